# Tests of tools.
hippodrome_test(tools/command_line_test.cc hippodrome_tools)
hippodrome_test(tools/kernel_plot_test.cc hippodrome_tools)
hippodrome_test(tools/token_ids_test.cc hippodrome_tools)
hippodrome_test(tools/evaluate/perplexity_test.cc hippodrome_tools hippodrome_testing)
