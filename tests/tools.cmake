# Tests of tools.
hippodrome_test_files(tools_tests
  LIBRARIES hippodrome_tools hippodrome_server_testing hippodrome_testing
    nlohmann_json::nlohmann_json
  SOURCES
    tools/bench/bench_compare_test.cc
    tools/bench/bench_encode_test.cc
    tools/bench/bench_generate_test.cc
    tools/bench/bench_report_test.cc
    tools/bench/bench_speculation_test.cc
    tools/bench/bench_state_test.cc
    tools/bench/timed_model_test.cc
    tools/command_line/command_line_test.cc
    tools/command_line/config_file_test.cc
    tools/command_line/encoder_input_test.cc
    tools/command_line/help_test.cc
    tools/command_line/progress_test.cc
    tools/command_line/stop_signal_test.cc
    tools/command_line/strict_reader_test.cc
    tools/command_line/token_ids_test.cc
    tools/commands/bench_command_test.cc
    tools/commands/finetune_command_test.cc
    tools/commands/forward_command_test.cc
    tools/commands/generate_command_test.cc
    tools/commands/inspect_command_test.cc
    tools/commands/interactive_session_test.cc
    tools/commands/key_command_test.cc
    tools/commands/serve_options_test.cc
    tools/commands/tokenizer_command_test.cc
    tools/compare/checking_backend_test.cc
    tools/device_model/launch_time_test.cc
    tools/device_model/modelled_machine_test.cc
    tools/limits/flops_test.cc
    tools/limits/machine_test.cc
    tools/limits/model_cost_test.cc
    tools/machine/cpu_placement_test.cc
    tools/machine/cpu_topology_test.cc
    tools/machine/machine_text_test.cc
    tools/machine/system_files_test.cc
    tools/machine/system_memory_test.cc
    tools/plots/bigs_figures_test.cc
    tools/plots/encoder_kernels_test.cc
    tools/plots/h3_kernel_plot_test.cc
    tools/plots/line_chart_test.cc
    tools/train/finetune/finetune_grid_test.cc
)

hippodrome_test_files(batch_tests
  LIBRARIES hippodrome_batch hippodrome_server_testing hippodrome_testing
    nlohmann_json::nlohmann_json
  SOURCES
    tools/batch/batch_job_test.cc
    tools/batch/batch_output_test.cc
    tools/batch/run_batch_test.cc
    tools/batch/score_json_test.cc
)

# What calls a server.
hippodrome_test_files(client_tests
  LIBRARIES hippodrome_load hippodrome_serving_commands hippodrome_server_testing hippodrome_server
    hippodrome_testing nlohmann_json::nlohmann_json
  SOURCES
    tools/client/client_connection_test.cc
    tools/client/client_security_test.cc
    tools/client/event_stream_test.cc
    tools/client/metrics_text_test.cc
    tools/load/load_client_test.cc
    tools/load/load_figures_test.cc
    tools/load/load_report_test.cc
    tools/load/load_schedule_test.cc
    tools/load/prompts_test.cc
    tools/top/top_figures_test.cc
    tools/top/top_screen_test.cc
    tools/top/top_state_test.cc
)

# The program without its tools.
hippodrome_test_files(commands_not_built_tests
  SOURCES tools/commands/commands_not_built_test.cc)
target_sources(commands_not_built_tests PRIVATE ${CMAKE_SOURCE_DIR}/tools/commands/commands_not_built.cc)

# The scripts that draw what was measured.
add_test(NAME benchmarks_plots_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/benchmarks/plots_test.py)

# The checks of the sources, and of what is written about them.
add_test(NAME tools_names_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/names_test.py)
add_test(NAME tools_includes_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/includes_test.py)
add_test(NAME tools_docs_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/docs_test.py)
add_test(NAME tools_help_style_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/help_style_test.py $<TARGET_FILE:hippodrome>)
add_test(NAME tools_tidy_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/tidy_test.py)

hippodrome_test_files(evaluate_tests
  LIBRARIES hippodrome_evaluate hippodrome_testing
  SOURCES
    tools/evaluate/choices_file_test.cc
    tools/evaluate/data_file_test.cc
    tools/evaluate/encoders/cola_annotations_test.cc
    tools/evaluate/encoders/encoder_session_test.cc
    tools/evaluate/encoders/eval_classification_test.cc
    tools/evaluate/encoders/eval_glue_task_test.cc
    tools/evaluate/encoders/eval_glue_test.cc
    tools/evaluate/encoders/eval_scrolls_test.cc
    tools/evaluate/encoders/eval_squad_test.cc
    tools/evaluate/encoders/eval_syntax_test.cc
    tools/evaluate/encoders/metric_report_test.cc
    tools/evaluate/encoders/scrolls_file_test.cc
    tools/evaluate/encoders/squad_score_test.cc
    tools/evaluate/encoders/syntax_pairs_test.cc
    tools/evaluate/eval_choices_test.cc
    tools/evaluate/eval_perplexity_test.cc
    tools/evaluate/interval_test.cc
    tools/evaluate/label_names_test.cc
    tools/evaluate/labelled_texts_test.cc
    tools/evaluate/lm/continuation_test.cc
    tools/evaluate/lm/decoder_session_test.cc
    tools/evaluate/lm/documents_test.cc
    tools/evaluate/lm/eval_lm_test.cc
    tools/evaluate/lm/expression_test.cc
    tools/evaluate/lm/few_shot_test.cc
    tools/evaluate/lm/lm_figures_test.cc
    tools/evaluate/lm/lm_question_test.cc
    tools/evaluate/lm/lm_task_test.cc
    tools/evaluate/metrics_test.cc
    tools/evaluate/positions/eval_positions_test.cc
    tools/evaluate/positions/length_report_test.cc
    tools/evaluate/positions/perplexity_by_length_test.cc
    tools/evaluate/positions/window_reader_test.cc
    tools/evaluate/python_text_test.cc
    tools/evaluate/squad_file_test.cc
    tools/evaluate/tsv_test.cc
)

add_library(hippodrome_thread_ranks STATIC testing/thread_ranks.cc)
target_link_libraries(hippodrome_thread_ranks PUBLIC hippodrome_ranks)
hippodrome_test_files(train_tests
  LIBRARIES hippodrome_train hippodrome_thread_ranks hippodrome_testing nlohmann_json::nlohmann_json
  SOURCES
    tools/mpi/collectives_test.cc
    tools/mpi/open_communicator_test.cc
    tools/train/checkpoint/checksum_test.cc
    tools/train/checkpoint/saved_model_test.cc
    tools/train/checkpoint/training_state_test.cc
    tools/train/run/run_file_test.cc
    tools/train/run/schedule_test.cc
    tools/train/run/starting_model_test.cc
    tools/train/session/metrics_log_test.cc
    tools/train/session/run_description_test.cc
    tools/train/session/replicas_test.cc
    tools/train/session/training_session_test.cc
    tools/train/step/decoder_trainee_test.cc
    tools/train/step/encoder_trainee_test.cc
    tools/train/step/gradient_input_test.cc
    tools/train/step/gradient_all_reduce_test.cc
    tools/train/step/gradient_sum_test.cc
    tools/train/step/gradient_tree_test.cc
    tools/train/step/optimizer_test.cc
    tools/train/step/parameter_blocks_test.cc
    tools/train/step/parameter_groups_test.cc
    tools/train/step/step_limits_test.cc
)
# It stands between the program and the C library.
hippodrome_test_files(training_state_crash_tests
  LIBRARIES hippodrome_train_shell ${CMAKE_DL_LIBS}
  SOURCES tools/train/training_state_crash_test.cc)
add_test(NAME tools_train_fetch_data_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/train/fetch_data_test.py)
add_test(NAME tools_train_lra_data_test
  COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/train/lra_data_test.py)

hippodrome_test_files(train_data_tests
  LIBRARIES hippodrome_train_data hippodrome_train_tokenizer
  SOURCES
    tools/train/data/batch_sampler_test.cc
    tools/train/data/causal_lm_test.cc
    tools/train/data/encode_text_test.cc
    tools/train/data/masked_lm_test.cc
    tools/train/data/numpy_generator_test.cc
    tools/train/data/question_answering_test.cc
    tools/train/data/split_text_test.cc
    tools/train/data/synthetic_tasks_test.cc
    tools/train/data/text_classification_test.cc
    tools/train/data/token_classification_test.cc
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
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
hippodrome_test_files(convert_tests
  LIBRARIES hippodrome_convert_testing PkgConfig::LIBZIP
  SOURCES
    tools/convert/convert_bigs_test.cc
    tools/convert/convert_test.cc
    tools/convert/convert_wrappers_test.cc
    tools/convert/export_test.cc
    tools/convert/flax/flax_checkpoint_test.cc
    tools/convert/flax/flax_writer_test.cc
    tools/convert/flax/msgpack_reader_test.cc
    tools/convert/flax/msgpack_writer_test.cc
    tools/convert/models/bigs_names_test.cc
    tools/convert/models/decide_bigs_config_test.cc
    tools/convert/models/h3_names_test.cc
    tools/convert/models/infer_config_test.cc
    tools/convert/models/module_prefixes_test.cc
    tools/convert/model_card_test.cc
    tools/convert/sharded_checkpoint_test.cc
    tools/convert/torch/legacy_checkpoint_test.cc
    tools/convert/torch/pickle_test.cc
    tools/convert/torch/torch_state_dict_test.cc
    tools/convert/torch/torch_writer_test.cc
    tools/convert/torch/zip_checkpoint_test.cc
    tools/convert/torch/zip_writer_test.cc
)
