# Tests of kernels.

hippodrome_test(kernels/cpu/linear_test.cc hippodrome_kernels)
