# Tests of engine.
add_library(hippodrome_testing STATIC
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/attention.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/h3_layer.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/reference_backend.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/sample.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/reference/ssm.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/random_model.cc
)
target_link_libraries(hippodrome_testing PUBLIC hippodrome_engine)

hippodrome_test(reference/sample_test.cc hippodrome_testing)
hippodrome_test(engine/decode_state_test.cc hippodrome_testing)
hippodrome_test(engine/decode_step_test.cc hippodrome_testing)
hippodrome_test(engine/prefill_chunk_test.cc hippodrome_testing)
hippodrome_test(engine/generator_test.cc hippodrome_testing)
hippodrome_test(engine/golden_test.cc hippodrome_testing)
hippodrome_test(engine/model_directory_test.cc hippodrome_testing)
hippodrome_test(engine/models/hybrid_h3_test.cc hippodrome_testing)
hippodrome_test(engine/checkpoint/random_weights_test.cc hippodrome_testing)
hippodrome_test(engine/checkpoint/safetensors_corruption_test.cc hippodrome_engine)
hippodrome_test(engine/checkpoint/safetensors_test.cc hippodrome_engine)
hippodrome_test(engine/checkpoint/safetensors_writer_test.cc hippodrome_engine)
hippodrome_test(engine/checkpoint/tensor_values_test.cc hippodrome_engine)
hippodrome_test(engine/config_test.cc hippodrome_engine)
hippodrome_test(engine/tokenizer/bpe_test.cc hippodrome_engine)
hippodrome_test(engine/tokenizer/bpe_vocabulary_test.cc hippodrome_engine)
hippodrome_test(engine/tokenizer/gpt2_split_test.cc hippodrome_engine)
hippodrome_test(engine/tokenizer/utf8_stream_test.cc hippodrome_engine)
