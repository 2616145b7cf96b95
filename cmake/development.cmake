# For work on tenet itself; a project that uses tenet never sees this file.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(TENET_CCACHE ccache)
mark_as_advanced(TENET_CCACHE)
if(TENET_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TENET_CCACHE})
endif()

set(TENET_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
if(TENET_SANITIZE)
  add_compile_options(-fsanitize=${TENET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${TENET_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-Wno-pass-failed)  # instrumented loops do not vectorize
  endif()
endif()
