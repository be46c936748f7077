# Tests of clients.
hippodrome_test_files(cpp_client_tests
  LIBRARIES hippodrome_server_testing hippodrome_server hippodrome_cpp_client
  SOURCES clients/cpp/hippodrome/client_test.cc)
target_compile_definitions(cpp_client_tests PRIVATE
  HIPPODROME_EXAMPLE="$<TARGET_FILE:cpp_client_example>")
add_dependencies(cpp_client_tests cpp_client_example)
