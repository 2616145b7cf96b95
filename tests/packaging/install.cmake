# Installs BUILD_DIR below WORK, in one place, and moves it to another.
file(REMOVE_RECURSE ${WORK})
execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK}/installed COMMAND_ERROR_IS_FATAL ANY
)
file(RENAME ${WORK}/installed ${WORK}/moved)
