# Tests of tools.
hippodrome_test(tools/bench/model_cost_test.cc hippodrome_tools)
hippodrome_test(tools/command_line_test.cc hippodrome_tools)
hippodrome_test(tools/kernel_plot_test.cc hippodrome_tools)
hippodrome_test(tools/compare/checking_backend_test.cc hippodrome_measure hippodrome_testing)
hippodrome_test(tools/progress_test.cc hippodrome_tools)
hippodrome_test(tools/serve_options_test.cc hippodrome_tools)
hippodrome_test(tools/token_ids_test.cc hippodrome_tools)
hippodrome_test(tools/evaluate/perplexity_test.cc hippodrome_tools hippodrome_testing)

add_library(hippodrome_convert_testing STATIC
  ${CMAKE_CURRENT_SOURCE_DIR}/tools/convert/model_file.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/tools/convert/torch_builder.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/tools/convert/zip_builder.cc
)
target_compile_definitions(hippodrome_convert_testing PRIVATE
  HIPPODROME_TESTDATA="${HIPPODROME_TESTDATA}")
target_link_libraries(hippodrome_convert_testing PUBLIC hippodrome_convert GTest::gtest)
hippodrome_test(tools/convert/convert_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/h3_names_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/infer_config_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/legacy_checkpoint_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/pickle_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/torch_state_dict_test.cc hippodrome_convert_testing)
hippodrome_test(tools/convert/zip_checkpoint_test.cc hippodrome_convert_testing)
