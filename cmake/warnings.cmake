# tenet_warnings: for tests, benchmarks and examples, which show what a strict user would see.
# Errors only on the compilers the project is checked with: newer ones invent new warnings.
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  set(_werror ON)
else()
  set(_werror OFF)
endif()
option(TENET_WERROR "Warnings are errors" ${_werror})

add_library(tenet_warnings INTERFACE)
target_compile_options(tenet_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow $<$<BOOL:${TENET_WERROR}>:-Werror>)
