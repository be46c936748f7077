# Tests of server.
find_package(fmt CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(ZLIB REQUIRED)

add_library(hippodrome_server_testing STATIC
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/admission_simulator.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/byte_tokenizer.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/certificates.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/fake_encoder.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/fake_engine.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/fake_model.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/testing/http_client.cc
)
hippodrome_compile_alone(${CMAKE_CURRENT_SOURCE_DIR}/testing/fake_engine.cc)
target_link_libraries(hippodrome_server_testing PUBLIC hippodrome_serving PRIVATE fmt::fmt OpenSSL::Crypto)

hippodrome_test_files(server_tests
  LIBRARIES hippodrome_server_testing nlohmann_json::nlohmann_json ZLIB::ZLIB
  SOURCES
    server/access/access_control_test.cc
    server/access/key_account_test.cc
    server/batches/append_file_test.cc
    server/batches/batch_input_test.cc
    server/batches/batch_journal_test.cc
    server/batches/batch_runner_test.cc
    server/batches/batch_store_test.cc
    server/batches/line_reader_test.cc
    server/batching/encoding_batcher_test.cc
    server/batching/encoding_job_test.cc
    server/batching/encoding_stress_test.cc
    server/batching/generation_batcher_queue_test.cc
    server/batching/generation_batcher_migrate_test.cc
    server/batching/generation_batcher_state_test.cc
    server/batching/generation_batcher_test.cc
    server/batching/token_stream_test.cc
    server/grpc/accept_loop_test.cc
    server/grpc/flood_guard_test.cc
    server/grpc/memory_pressure_test.cc
    server/handlers/answer_question_handler_test.cc
    server/handlers/encoding_handlers_test.cc
    server/handlers/fill_mask_handler_test.cc
    server/handlers/generation_call_test.cc
    server/handlers/handlers_test.cc
    server/handlers/model_list_test.cc
    server/handlers/model_repository_test.cc
    server/handlers/score_handler_test.cc
    server/handlers/tag_tokens_handler_test.cc
    server/handlers/tensor_contents_test.cc
    server/http/connection_table_test.cc
    server/http/cors_test.cc
    server/routes/admin_routes_test.cc
    server/routes/access_routes_test.cc
    server/routes/batch_routes_test.cc
    server/routes/completion_work_test.cc
    server/routes/encoding_routes_test.cc
    server/http/http_limits_test.cc
    server/http/http_router_test.cc
    server/routes/http_routes_test.cc
    server/http/http_rules_test.cc
    server/http/http_server_test.cc
    server/routes/kserve_routes_test.cc
    server/http/large_body_queue_test.cc
    server/routes/openapi_test.cc
    server/routes/state_routes_test.cc
    server/routes/tei_routes_test.cc
    server/routes/tgi_routes_test.cc
    server/metrics/metrics_test.cc
    server/log/log_file_test.cc
    server/log/log_line_test.cc
    server/metrics/process_metrics_test.cc
    server/reload_test.cc
    server/calls/call_ids_test.cc
    server/calls/call_record_test.cc
    server/tls/tls_context_test.cc
    server/tls/tls_files_test.cc
    server/tls/tls_session_test.cc
    server/states/directory_store_test.cc
    server/states/memory_store_test.cc
    server/states/redis_store_test.cc
    server/states/state_store_test.cc
)

# The thread sanitizer cannot see into the distribution's gRPC, and the others have one thread.
if(NOT HIPPODROME_SANITIZE STREQUAL "thread")
  hippodrome_test_files(server_text_tests
    LIBRARIES hippodrome_server_testing nlohmann_json::nlohmann_json
    SOURCES
      server/access/key_file_test.cc
      server/access/key_secret_test.cc
      server/address_test.cc
      server/batching/admission_simulator_test.cc
      server/batching/admission_test.cc
      server/batching/class_queue_test.cc
      server/batching/fair_queue_test.cc
      server/batching/running_sequence_test.cc
      server/batching/scheduling_test.cc
      server/batching/shared_room_test.cc
      server/batching/stop_matcher_test.cc
      server/handlers/generation_numbers_test.cc
      server/http/chunked_body_test.cc
      server/http/http_head_test.cc
      server/http/multipart_test.cc
      server/http/query_test.cc
      server/json/json_encoding_requests_test.cc
      server/json/json_encoding_responses_test.cc
      server/json/json_parse_test.cc
      server/json/json_requests_test.cc
      server/json/json_responses_test.cc
      server/json/log_probabilities_json_test.cc
      server/json/state_json_test.cc
      server/page/page_test.cc
      server/status_map_test.cc
      server/states/open_state_store_test.cc
      server/states/state_signature_test.cc
  )
  hippodrome_test_files(server_grpc_tests
    LIBRARIES hippodrome_server_testing hippodrome_server nlohmann_json::nlohmann_json
    SOURCES
      server/grpc/encoding_service_test.cc
      server/grpc/grpc_server_test.cc
      server/grpc/interoperability_test.cc
    server/grpc/kserve_service_test.cc
      server/grpc/health_service_test.cc
      server/grpc/reflection_service_test.cc
      server/load_model_test.cc
      server/mixed_streams_test.cc
      server/score_pairs_test.cc
      server/server_test.cc
      server/tls_server_test.cc
  )
endif()

# tests/benchmarks/README.md says what they showed.
if(NOT HIPPODROME_SANITIZE)
  add_executable(stop_matcher_speed ${CMAKE_CURRENT_LIST_DIR}/benchmarks/stop_matcher_speed.cc)
  target_link_libraries(stop_matcher_speed PRIVATE hippodrome_serving fmt::fmt)
  add_executable(key_timing ${CMAKE_CURRENT_LIST_DIR}/benchmarks/key_timing.cc)
  target_link_libraries(key_timing PRIVATE hippodrome_server_testing nlohmann_json::nlohmann_json)
  add_executable(admission_simulator ${CMAKE_CURRENT_LIST_DIR}/benchmarks/admission_simulator.cc)
  target_link_libraries(admission_simulator PRIVATE
    hippodrome_server_testing hippodrome_command_line fmt::fmt)
endif()
