# HIPPODROME_HIGHWAY_HERE: definitions that leave out the instruction sets that Highway would not
# choose on this machine, which compile to code that no test here can reach. What is older than AVX2
# goes in any case; a machine without it runs the scalar code.
set(HIPPODROME_HIGHWAY_HERE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)")
file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
set(avx3 "")
foreach(flag avx512f avx512bw avx512cd avx512dq avx512vl)
  string(REGEX MATCH " ${flag}( |$)" found "${flags}")
  if(NOT found)
    set(avx3 "missing")
  endif()
endforeach()
if(NOT avx3)
  set(HIPPODROME_HIGHWAY_HERE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX2)")
endif()
