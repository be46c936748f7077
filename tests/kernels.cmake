# Tests of kernels.

hippodrome_test(kernels/cpu/linear_test.cc hippodrome_kernels)
hippodrome_test(kernels/cpu/attention_test.cc hippodrome_kernels)
hippodrome_test(kernels/cpu/packed_weights_test.cc hippodrome_kernels)
hippodrome_test(kernels/cpu/tensor_memory_test.cc hippodrome_kernels)
hippodrome_test(kernels/cpu/embedding_test.cc hippodrome_kernels)
hippodrome_test(kernels/cpu/layer_norm_test.cc hippodrome_kernels)
hippodrome_test(kernels/cpu/linear_epilogue_test.cc hippodrome_kernels)
hippodrome_test(kernels/cpu/sample_test.cc hippodrome_kernels)
hippodrome_test(kernels/cpu/thread_pool_test.cc hippodrome_kernels)
