# Tests of tools.
hippodrome_test_files(tools_tests
  LIBRARIES hippodrome_tools hippodrome_testing
  SOURCES
    tools/bench/bench_encode_test.cc
    tools/bench/model_cost_test.cc
    tools/command_line_test.cc
    tools/compare/checking_backend_test.cc
    tools/encoder_input_test.cc
    tools/encoder_kernel_plot_test.cc
    tools/encoder_kernels_test.cc
    tools/encoder_logits_test.cc
    tools/flops_test.cc
    tools/kernel_plot_test.cc
    tools/progress_test.cc
    tools/serve_options_test.cc
    tools/token_ids_test.cc
    tools/tokenizer_command_test.cc
)

# The program without its tools.
hippodrome_test_files(commands_not_built_tests
  SOURCES tools/commands_not_built_test.cc)
target_sources(commands_not_built_tests PRIVATE ${CMAKE_SOURCE_DIR}/tools/commands_not_built.cc)

# The checks of the sources.
add_test(NAME tools_names_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/names_test.py)
add_test(NAME tools_tidy_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/tidy_test.py)

hippodrome_test_files(evaluate_tests
  LIBRARIES hippodrome_evaluate hippodrome_testing
  SOURCES
    tools/evaluate/batch_order_test.cc
    tools/evaluate/cola_annotations_test.cc
    tools/evaluate/data_file_test.cc
    tools/evaluate/eval_tasks_test.cc
    tools/evaluate/label_names_test.cc
    tools/evaluate/labelled_texts_test.cc
    tools/evaluate/metrics_test.cc
    tools/evaluate/perplexity_test.cc
    tools/evaluate/squad_file_test.cc
    tools/evaluate/squad_metrics_test.cc
    tools/evaluate/syntax_pairs_test.cc
    tools/evaluate/tsv_test.cc
)

hippodrome_test_files(train_tests
  LIBRARIES hippodrome_train hippodrome_testing nlohmann_json::nlohmann_json
  SOURCES
    tools/train/checksum_test.cc
    tools/train/decoder_trainee_test.cc
    tools/train/durable_files_test.cc
    tools/train/encoder_trainee_test.cc
    tools/train/loss_curve_test.cc
    tools/train/metrics_log_test.cc
    tools/train/optimizer_test.cc
    tools/train/parameter_groups_test.cc
    tools/train/replicas_test.cc
    tools/train/run_file_test.cc
    tools/train/saved_model_test.cc
    tools/train/schedule_test.cc
    tools/train/starting_model_test.cc
    tools/train/step_limits_test.cc
    tools/train/stop_signal_test.cc
    tools/train/training_progress_test.cc
    tools/train/training_state_test.cc
)
# It stands between the program and the C library.
hippodrome_test_files(training_state_crash_tests
  LIBRARIES hippodrome_train_shell ${CMAKE_DL_LIBS}
  SOURCES tools/train/training_state_crash_test.cc)
add_test(NAME tools_train_fetch_data_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/train/fetch_data_test.py)

hippodrome_test_files(train_data_tests
  LIBRARIES hippodrome_train_data hippodrome_train_tokenizer
  SOURCES
    tools/train/data/answer_windows_test.cc
    tools/train/data/causal_lm_test.cc
    tools/train/data/encode_text_test.cc
    tools/train/data/example_order_test.cc
    tools/train/data/masked_lm_test.cc
    tools/train/data/numpy_generator_test.cc
    tools/train/data/split_text_test.cc
    tools/train/data/synthetic_tasks_test.cc
    tools/train/data/tagged_words_test.cc
    tools/train/data/text_classification_test.cc
    tools/train/data/tokenized_text_test.cc
    tools/train/tokenizer/pair_merges_test.cc
    tools/train/tokenizer/train_bpe_test.cc
    tools/train/tokenizer/train_wordpiece_test.cc
)

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
hippodrome_test_files(convert_tests
  LIBRARIES hippodrome_convert_testing
  SOURCES
    tools/convert/bigs_names_test.cc
    tools/convert/convert_bigs_test.cc
    tools/convert/convert_test.cc
    tools/convert/decide_bigs_config_test.cc
    tools/convert/flax_checkpoint_test.cc
    tools/convert/h3_names_test.cc
    tools/convert/infer_config_test.cc
    tools/convert/legacy_checkpoint_test.cc
    tools/convert/pickle_test.cc
    tools/convert/torch_state_dict_test.cc
    tools/convert/zip_checkpoint_test.cc
)
