# Tests of engine.
add_library(hippodrome_testing STATIC
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/activation.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/attention.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/complex_matrix.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/h3_backward.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/h3_layer.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/h3_parameter_gradients.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/long_conv_backward.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/linear_attention.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/long_conv_ssm.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/mode_gradient.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/nplr_gradients.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/nplr_ssm.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/published_state.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/reference_backend.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/sample.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/ssm_layer.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/diagonal_ssm.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/diagonal_ssm_gradients.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/h3_ssm.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/training_attention.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/training_h3.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/training_linear.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/training_linear_attention.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/training_long_conv.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/training_memory.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/training/training_rows.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/initial_model.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/random_model.cc
)
hippodrome_compile_alone(${CMAKE_CURRENT_SOURCE_DIR}/reference/nplr_ssm.cc)
target_link_libraries(hippodrome_testing PUBLIC hippodrome_engine)

add_library(hippodrome_training_problems STATIC
  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/training/attention_problems.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/training/h3_problems.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/training/linear_problems.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/training/long_conv_problems.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/training/problem.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/training/row_problems.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/kernels/training/solve.cc
)
hippodrome_compile_alone(${CMAKE_CURRENT_SOURCE_DIR}/kernels/training/row_problems.cc)
target_link_libraries(hippodrome_training_problems PUBLIC hippodrome_testing)

add_library(hippodrome_test_backend_cpu STATIC
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/freed_state_cpu.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/isolation.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/test_backend_cpu.cc)
target_link_libraries(hippodrome_test_backend_cpu PUBLIC hippodrome_testing)

# What every backend must pass: kernels/cuda links the same objects to the CUDA backend.
set(HIPPODROME_BACKEND_TESTS
  engine/bigs_golden_test.cc
  engine/encoder_test.cc
  engine/golden_test.cc
  engine/models/bigs/bigs_test.cc
  engine/models/h3/hybrid_h3_test.cc
  engine/models/baselines/sequence_mixer_test.cc
  engine/streams_test.cc
  kernels/training_backend_test.cc
  kernels/training_operations_test.cc
)
add_library(hippodrome_backend_tests OBJECT ${HIPPODROME_BACKEND_TESTS})
target_link_libraries(hippodrome_backend_tests
  PRIVATE hippodrome_training_problems GTest::gtest GTest::gmock)
hippodrome_compile_test(hippodrome_backend_tests)
hippodrome_test_files(backend_tests
  COMPILED hippodrome_backend_tests
  LIBRARIES hippodrome_training_problems hippodrome_test_backend_cpu
  SOURCES ${HIPPODROME_BACKEND_TESTS})

# tests/benchmarks/README.md says what they showed. The tests of the last two are short forms.
if(NOT HIPPODROME_SANITIZE)
  find_package(fmt CONFIG REQUIRED)
  foreach(program isolation same_bits damaged_states)
    add_executable(${program} ${CMAKE_CURRENT_LIST_DIR}/benchmarks/${program}.cc)
    target_link_libraries(${program} PRIVATE hippodrome_test_backend_cpu fmt::fmt)
  endforeach()
  add_test(NAME benchmarks_same_bits COMMAND same_bits 3 8 deploy/models/h3-demo
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME benchmarks_damaged_states COMMAND damaged_states 200 deploy/models/h3-demo
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endif()
hippodrome_test_files(isolation_tests
  LIBRARIES hippodrome_test_backend_cpu
  SOURCES engine/attention_window_test.cc engine/isolation_test.cc)

# Hundreds of forward passes for one deviation: minutes where a sanitizer watches, which sees products
# of 8 and 4 bits in kernels/cpu/gemm/linear_test and in isolation_test.
set(statistics)
if(NOT HIPPODROME_SANITIZE)
  set(statistics engine/quantized_logits_test.cc)
endif()
hippodrome_test_files(engine_tests
  LIBRARIES hippodrome_training_problems
  SOURCES
    engine/checkpoint/random_weights_test.cc
    engine/checkpoint/finite_values_test.cc
    engine/checkpoint/fingerprint_weights_test.cc
    engine/checkpoint/stored_matrix_test.cc
    engine/generator_scores_test.cc
    engine/generator_start_test.cc
    engine/generator_sharing_test.cc
    engine/generator_checkpoints_test.cc
    engine/generator_speculation_test.cc
    engine/generation/model_drafter_test.cc
    engine/generator_test.cc
    engine/initialization/initial_weights_test.cc
    engine/mixer_states_test.cc
    engine/model_directory_test.cc
    engine/models/mixer_gradients_test.cc
    engine/passes/decode_step_test.cc
    engine/passes/forward_test.cc
    engine/passes/index_matrices_test.cc
    engine/passes/prefill_chunk_test.cc
    engine/passes/token_chooser_test.cc
    ${statistics}
    engine/diagonal_kernel_test.cc
    engine/state/decode_state_test.cc
    engine/state/prefix_tree_test.cc
    engine/state/rewind_test.cc
    engine/state/saved_state_test.cc
    engine/state/state_file_test.cc
    reference/sample_test.cc
    reference/training/training_reference_test.cc
)

# These have one thread: nothing for the thread sanitizer.
if(NOT HIPPODROME_SANITIZE STREQUAL "thread")
  hippodrome_test_files(engine_text_tests
    LIBRARIES hippodrome_testing
    SOURCES
      engine/generation/adjusted_tokens_test.cc
      engine/generation/speculation_test.cc
      engine/base/xxh3_test.cc
      engine/base/durable_files_test.cc
      engine/base/partial_file_test.cc
      engine/checkpoint/safetensors_corruption_test.cc
      engine/checkpoint/safetensors_test.cc
      engine/checkpoint/safetensors_writer_test.cc
      engine/checkpoint/tensor_values_test.cc
      engine/config/bigs_config_test.cc
      engine/config/config_test.cc
      engine/initialization/hippo_test.cc
      engine/initialization/position_table_test.cc
      engine/parameter_ranges_test.cc
      engine/sampling_test.cc
      engine/tasks/answer_spans_test.cc
      engine/tasks/fill_mask_test.cc
      engine/tasks/label_scores_test.cc
      engine/tasks/tagged_spans_test.cc
      engine/tokenizer/bert_characters_test.cc
      engine/tokenizer/bert_normalizer_test.cc
      engine/tokenizer/bpe_test.cc
      engine/tokenizer/bpe_vocabulary_test.cc
      engine/tokenizer/code_points_test.cc
      engine/tokenizer/encode_pair_test.cc
      engine/tokenizer/gpt2_split_test.cc
      engine/tokenizer/utf8_stream_test.cc
      engine/tokenizer/wordpiece_test.cc
      engine/tokenizer/wordpiece_vocabulary_test.cc
  )
endif()
