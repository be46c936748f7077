// What an operator can set, with units and bounds.
#ifndef HIPPODROME_SERVER_OPTIONS_H_
#define HIPPODROME_SERVER_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace hippodrome {

// Bounds on what one request may ask for.
struct RequestLimits {
  int64_t max_tokens = int64_t{1} << 20;  // new tokens per request, >= 1
  int64_t max_prompts = 128;              // prompts per HTTP call, >= 1
  int64_t max_stops = 16;
  int64_t max_stop_bytes = 256;
};

struct BatcherOptions {
  int64_t max_queue = 256;                       // requests that wait, [1, 1e6]
  int64_t max_queued_tokens = int64_t{4} << 20;  // prompt tokens that wait, over all requests
  std::chrono::milliseconds max_stall{50};       // prefill may delay running streams by this,
                                                 // [1, 60000]
  int64_t max_unread_tokens = 8192;              // per stream, waiting for a slow client
};

struct HttpOptions {
  std::string address = "127.0.0.1:8080";  // HOST:PORT or [HOST]:PORT; port 0: any free one
  int64_t max_body_bytes = int64_t{8} << 20;
  int64_t max_header_bytes = int64_t{16} << 10;
  int64_t max_connections = 1024;           // more are closed on arrival
  std::chrono::seconds header_timeout{10};  // for the headers of a request, once it has begun
  std::chrono::seconds body_timeout{30};    // for its body
  std::chrono::seconds idle_timeout{60};    // between requests
  std::chrono::seconds write_timeout{30};   // for a client to take what was sent
  int threads = 2;                          // that do input and output
};

struct GrpcOptions {
  std::string address = "127.0.0.1:50051";  // as for HTTP
  int max_message_bytes = 8 << 20;
};

struct ServerOptions {
  HttpOptions http;
  GrpcOptions grpc;
  BatcherOptions batcher;
  RequestLimits limits;
  std::chrono::seconds grace{30};  // for running streams after the first signal, [0, 3600]
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_OPTIONS_H_
