# The install tree has no absolute path in it: moved elsewhere, it keeps working.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package ${CMAKE_INSTALL_DATADIR}/cmake/tenet)
set(_pkgconfig ${CMAKE_INSTALL_DATADIR}/pkgconfig)

install(DIRECTORY include/tenet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")

set_target_properties(tenet_gzip PROPERTIES EXPORT_NAME gzip)
set_target_properties(tenet_checkpoint PROPERTIES EXPORT_NAME checkpoint)
set_target_properties(tenet_mpi PROPERTIES EXPORT_NAME mpi)
install(
  TARGETS tenet tenet_gzip tenet_checkpoint tenet_mpi EXPORT tenetTargets
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
)
install(EXPORT tenetTargets NAMESPACE tenet:: DESTINATION ${_package})

configure_package_config_file(cmake/tenetConfig.cmake.in tenetConfig.cmake INSTALL_DESTINATION ${_package})
write_basic_package_version_file(tenetConfigVersion.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(
  FILES ${PROJECT_BINARY_DIR}/tenetConfig.cmake ${PROJECT_BINARY_DIR}/tenetConfigVersion.cmake cmake/dependencies.cmake
  DESTINATION ${_package}
)

file(RELATIVE_PATH TENET_PC_PREFIX /${_pkgconfig} /)
string(REGEX REPLACE "/$" "" TENET_PC_PREFIX "${TENET_PC_PREFIX}")
set(TENET_PC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(cmake/tenet.pc.in tenet.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tenet.pc DESTINATION ${_pkgconfig})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tenet)
