# Tests of tools.
hippodrome_test(tools/bench/bench_encode_test.cc hippodrome_measure hippodrome_testing)
hippodrome_test(tools/bench/model_cost_test.cc hippodrome_measure)
hippodrome_test(tools/command_line_test.cc hippodrome_tools)
hippodrome_test(tools/encoder_input_test.cc hippodrome_command_line)
hippodrome_test(tools/encoder_kernel_plot_test.cc hippodrome_tools)
hippodrome_test(tools/encoder_kernels_test.cc hippodrome_tools hippodrome_testing)
hippodrome_test(tools/encoder_logits_test.cc hippodrome_tools hippodrome_testing)
hippodrome_test(tools/flops_test.cc hippodrome_tools)
hippodrome_test(tools/kernel_plot_test.cc hippodrome_tools)
hippodrome_test(tools/compare/checking_backend_test.cc hippodrome_measure hippodrome_testing)
hippodrome_test(tools/progress_test.cc hippodrome_tools)
hippodrome_test(tools/serve_options_test.cc hippodrome_tools)
hippodrome_test(tools/token_ids_test.cc hippodrome_tools)
hippodrome_test(tools/evaluate/batch_order_test.cc hippodrome_evaluate)
hippodrome_test(tools/evaluate/cola_annotations_test.cc hippodrome_evaluate)
hippodrome_test(tools/evaluate/data_file_test.cc hippodrome_evaluate)
hippodrome_test(tools/evaluate/eval_tasks_test.cc hippodrome_evaluate hippodrome_testing)
hippodrome_test(tools/evaluate/label_names_test.cc hippodrome_evaluate)
hippodrome_test(tools/evaluate/labelled_texts_test.cc hippodrome_evaluate)
hippodrome_test(tools/evaluate/metrics_test.cc hippodrome_evaluate)
hippodrome_test(tools/evaluate/perplexity_test.cc hippodrome_evaluate hippodrome_testing)
hippodrome_test(tools/evaluate/squad_file_test.cc hippodrome_evaluate)
hippodrome_test(tools/evaluate/squad_metrics_test.cc hippodrome_evaluate)
hippodrome_test(tools/evaluate/syntax_pairs_test.cc hippodrome_evaluate)
hippodrome_test(tools/evaluate/tsv_test.cc hippodrome_evaluate)

add_library(hippodrome_convert_testing STATIC
  ${CMAKE_CURRENT_SOURCE_DIR}/tools/convert/bigs_files.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/tools/convert/model_file.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/tools/convert/msgpack_builder.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/tools/convert/torch_builder.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/tools/convert/zip_builder.cc
)
target_compile_definitions(hippodrome_convert_testing PRIVATE
  HIPPODROME_TESTDATA="${HIPPODROME_TESTDATA}")
target_link_libraries(hippodrome_convert_testing PUBLIC hippodrome_convert GTest::gtest)
hippodrome_test(tools/convert/bigs_names_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/convert_bigs_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/convert_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/decide_bigs_config_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/flax_checkpoint_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/h3_names_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/infer_config_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/legacy_checkpoint_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/pickle_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/torch_state_dict_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/zip_checkpoint_test.cc hippodrome_convert_testing)
