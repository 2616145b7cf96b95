# cmake -DPROGRAM=... -DCHART=... -P check.cmake: one pair of the light work of each kind. That all libraries give the
# same results, bench_compare checks itself.
set(light "^(lenet/.*/1$|mlp|tiny|conv2d/.*/20x50|max_pool|pointwise|softmax|cross_entropy|optimizer|gemm/.*/64x)")
execute_process(
  COMMAND ${PROGRAM} --pairs 1 --json --svg ${CHART} --filter ${light}
  OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE status
)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "status ${status}: ${errors}")
endif()

string(REGEX REPLACE "\n$" "" output "${output}")
string(REPLACE "\n" ";" lines "${output}")
foreach(line IN LISTS lines)
  foreach(member IN ITEMS name unit peer_name)
    string(JSON value GET "${line}" ${member})
    if(value STREQUAL "")
      message(FATAL_ERROR "no ${member}: ${line}")
    endif()
  endforeach()
  foreach(member IN ITEMS tenet peer ratio)
    string(JSON value GET "${line}" ${member})
    if(NOT value GREATER 0)
      message(FATAL_ERROR "${member} is not positive: ${line}")
    endif()
  endforeach()
endforeach()

file(READ ${CHART} chart)
string(REGEX MATCHALL "<rect " bars "${chart}")
list(LENGTH bars bars)
list(LENGTH lines rows)
if(NOT chart MATCHES "</svg>\n$" OR NOT bars GREATER rows)
  message(FATAL_ERROR "${bars} rectangles in the chart of ${rows} rows")
endif()

foreach(wrong IN ITEMS "--filter=[" "--filter=^nothing$" "--pairs=0" "--threads=0" "--svg=/nowhere/chart.svg;--filter=mlp")
  execute_process(COMMAND ${PROGRAM} ${wrong} --json OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status MATCHES "^[0-9]+$" OR status EQUAL 0)
    message(FATAL_ERROR "${wrong}: status ${status}")
  endif()
endforeach()
