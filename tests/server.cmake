# Tests of server.
find_package(nlohmann_json CONFIG REQUIRED)

add_library(hippodrome_server_testing STATIC
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/byte_tokenizer.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/fake_encoder.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/fake_engine.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/fake_model.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/http_client.cc
)
target_link_libraries(hippodrome_server_testing PUBLIC hippodrome_serving)

hippodrome_test(server/address_test.cc hippodrome_serving)
hippodrome_test(server/admission_test.cc hippodrome_serving)
hippodrome_test(server/status_map_test.cc hippodrome_serving)
hippodrome_test(server/stop_matcher_test.cc hippodrome_serving)
hippodrome_test(server/text_decoder_test.cc hippodrome_server_testing)
hippodrome_test(server/token_stream_test.cc hippodrome_server_testing)
hippodrome_test(server/encoding_batcher_test.cc hippodrome_server_testing)
hippodrome_test(server/encoding_handlers_test.cc hippodrome_server_testing)
hippodrome_test(server/answer_question_handler_test.cc hippodrome_server_testing)
hippodrome_test(server/fill_mask_handler_test.cc hippodrome_server_testing)
hippodrome_test(server/tag_tokens_handler_test.cc hippodrome_server_testing)
hippodrome_test(server/encoding_job_test.cc hippodrome_serving)
hippodrome_test(server/encoding_policy_test.cc hippodrome_serving)
hippodrome_test(server/encoding_stress_test.cc hippodrome_server_testing)
hippodrome_test(server/generation_batcher_test.cc hippodrome_server_testing)
hippodrome_test(server/handlers_test.cc hippodrome_server_testing)
hippodrome_test(server/json_encoding_requests_test.cc hippodrome_serving)
hippodrome_test(server/json_encoding_responses_test.cc
  hippodrome_serving nlohmann_json::nlohmann_json)
hippodrome_test(server/json_requests_test.cc hippodrome_serving)
hippodrome_test(server/json_responses_test.cc hippodrome_serving)
hippodrome_test(server/metrics_test.cc hippodrome_serving)
hippodrome_test(server/http_server_test.cc hippodrome_server_testing)
hippodrome_test(server/http_routes_test.cc hippodrome_server_testing nlohmann_json::nlohmann_json)
hippodrome_test(server/encoding_routes_test.cc
  hippodrome_server_testing nlohmann_json::nlohmann_json)

hippodrome_test(server/encoding_service_test.cc hippodrome_server_testing hippodrome_server)
hippodrome_test(server/grpc_server_test.cc hippodrome_server_testing hippodrome_server)
hippodrome_test(server/load_model_test.cc hippodrome_server_testing hippodrome_server)
hippodrome_test(server/mixed_streams_test.cc
  hippodrome_server_testing hippodrome_server nlohmann_json::nlohmann_json)
hippodrome_test(server/server_test.cc hippodrome_server_testing hippodrome_server)
# Thread checking cannot see into the distribution's gRPC.
set_tests_properties(
  server_encoding_service_test server_grpc_server_test server_load_model_test
  server_mixed_streams_test server_server_test
  PROPERTIES LABELS grpc)
