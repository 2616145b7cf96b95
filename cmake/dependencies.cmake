# Looks up what tenet needs, and nothing more. Shared by the build tree and the installed package.

# tenet_find_dependencies(COMPONENT...): finds Eigen, OpenMP where wanted, and what the components need.
# Sets tenet_<component>_FOUND, and tenet_NOT_FOUND_MESSAGE to what is missing (empty: nothing).
macro(tenet_find_dependencies)
  set(tenet_NOT_FOUND_MESSAGE "")
  tenet_find_dependency(Eigen3 3.4 Eigen3::Eigen core)
  if(TENET_OPENMP AND NOT TARGET OpenMP::OpenMP_CXX)
    find_package(OpenMP QUIET COMPONENTS CXX)
  endif()
  foreach(_tenet_component IN ITEMS ${ARGN})
    if(_tenet_component STREQUAL "gzip")
      tenet_find_dependency(ZLIB 1.2 ZLIB::ZLIB gzip)
    elseif(_tenet_component STREQUAL "checkpoint")
      tenet_find_dependency(nlohmann_json 3.9 nlohmann_json::nlohmann_json checkpoint)
    elseif(_tenet_component STREQUAL "mpi")
      tenet_find_dependency(MPI 3.0 MPI::MPI_CXX mpi)
    else()
      set(tenet_${_tenet_component}_FOUND FALSE)
      string(APPEND tenet_NOT_FOUND_MESSAGE
             "tenet has no component '${_tenet_component}', only gzip, checkpoint and mpi. "
      )
    endif()
  endforeach()
endmacro()

# A target that the project has made already is taken as it is.
macro(tenet_find_dependency package version target component)
  if(NOT TARGET ${target})
    find_package(${package} ${version} QUIET)
  endif()
  if(TARGET ${target})
    set(tenet_${component}_FOUND TRUE)
  else()
    set(tenet_${component}_FOUND FALSE)
    string(APPEND tenet_NOT_FOUND_MESSAGE "tenet's ${component} part needs ${package} ${version}, which is not found. ")
  endif()
endmacro()
