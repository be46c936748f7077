// What an operator can set, with units and bounds.
#ifndef HIPPODROME_SERVER_OPTIONS_H_
#define HIPPODROME_SERVER_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hippodrome {

// Bounds on what one request may ask for, beside those of its numbers (parameter_ranges.h).
struct RequestLimits {
  int64_t max_choices = 128;  // sequences per call: prompts times best_of, or
                              // continuations; >= 1
  int64_t max_stops = 16;
  int64_t max_stop_bytes = 256;
  int64_t max_logit_bias = 1024;  // entries
  // In the answer to one call: tokens that are scored, times one and their alternatives. As JSON
  // they take 25 to 70 bytes each.
  int64_t max_scores = int64_t{1} << 20;
  // Of encoders, per call. A mask's logits take 4 bytes for each token of the vocabulary, and each
  // candidate repeats its input as text. An embedding of a token takes some ten bytes a value.
  int64_t max_inputs = 1024;                    // inputs, or questions
  int64_t max_masks = 512;                      // [MASK] in all inputs together
  int64_t max_candidates = 4096;                // masks times top_k
  int64_t max_answers = 100;                    // top_k of a question
  int64_t max_token_values = int64_t{1} << 22;  // in the embeddings of all tokens
};

struct BatcherOptions {
  int64_t max_queue = 256;                // requests that wait, [1, 1e6]
  std::chrono::milliseconds max_wait{0};  // that a request waits, <= 1 day; 0: for ever
  // Of slots and pages, that one client may hold while there are others, and of the queue in any
  // case, [0, 1]; one request it may.
  double max_client_share = 0.75;
  int64_t max_queued_tokens = int64_t{4} << 20;  // prompt tokens that wait, over all requests
  std::chrono::milliseconds max_stall{50};       // prefill may delay running streams by this,
                                                 // [1, 60000]
  int64_t max_unread_tokens = 8192;              // per stream, waiting for a slow client
  // What the requests that are here, from arrival until their client has its answer, may take as
  // log probabilities. One request always may.
  int64_t max_score_bytes = int64_t{2} << 30;
};

struct EncodingOptions {
  int64_t max_queue = 4096;                      // inputs that wait, [1, 1e6]
  std::chrono::milliseconds max_wait{0};         // that an input waits, <= 1 day; 0: for ever
  double max_client_share = 0.75;                // of the queue, and of output bytes, [0, 1]
  int64_t max_queued_tokens = int64_t{4} << 20;  // their tokens, padding included
  // What the calls that are here, from arrival until their client has its answer, take as logits.
  int64_t max_output_bytes = int64_t{1} << 30;
  // That an input waits for others to join its batch while the engine is idle, [0, 1e6]. While it
  // is busy they gather anyway; so this needs only to cover a burst, and is short beside a batch.
  std::chrono::microseconds max_batch_delay{500};
};

// Of saved states.
struct StateOptions {
  std::string store = "memory";                 // as OpenStateStore() takes it
  int64_t store_bytes = int64_t{1} << 30;       // that it holds at most
  int64_t max_state_bytes = int64_t{64} << 20;  // of one file
  bool import = true;                           // files of clients are taken
  std::string key;                              // file of ReadStateKey(); empty: none
  // Tokens from one checkpoint of a kept state to the next, a multiple of kCaptureTokens; 0: none.
  int64_t checkpoint_interval = 0;
  std::chrono::seconds max_ttl = std::chrono::hours(24);  // that a handle lives, > 0
  // What requests that are here hold as states: those that they go on from, those that are being
  // kept, and, once more, those that are being received. One always may.
  int64_t max_bytes_in_transit = int64_t{256} << 20;
};

// Of /v1/files and /v1/batches.
struct BatchStoreOptions {
  std::string directory;                          // empty: there are none
  int64_t file_bytes = int64_t{64} << 20;         // of one file that a client sends
  int64_t directory_bytes = int64_t{4096} << 20;  // of all that is in the directory
};

struct HttpOptions {
  std::string address = "127.0.0.1:8080";  // HOST:PORT or [HOST]:PORT; port 0: any free one
  std::string listener = "main";           // its name in metrics
  int64_t max_body_bytes = int64_t{8} << 20;
  // What the bodies that are being read, or wait for their handler, take together. Each is taken up
  // to 64 KiB whatever the others take.
  int64_t max_body_bytes_total = int64_t{64} << 20;
  int64_t max_header_bytes = int64_t{16} << 10;
  // More than these have the longest idle one closed, or are closed on arrival where none is idle.
  int64_t max_connections = 1024;
  int64_t max_connections_per_address = 512;    // of IPv6, per /64; 0: no limit
  std::chrono::seconds first_byte_timeout{10};  // for a new client to begin a request
  std::chrono::seconds header_timeout{10};      // for the headers of a request, once it has begun
  std::chrono::seconds body_timeout{30};        // for its body
  std::chrono::seconds idle_timeout{60};        // between requests
  std::chrono::seconds write_timeout{30};       // for a client to take what was sent
  std::chrono::milliseconds filler_interval{10000};  // between comments in a stream that waits
  int threads = 2;                                   // that do input and output
  // Of web pages that may read answers: SCHEME://HOST[:PORT] each, or "*" for all.
  std::vector<std::string> cors_origins;
};

struct GrpcOptions {
  std::string address = "127.0.0.1:50051";  // as for HTTP
  int max_message_bytes = 8 << 20;
  int64_t max_connections = 1024;             // more are closed on arrival, [1, 1e6]
  int64_t max_connections_per_address = 256;  // as ClientOf() tells them, [1, 1e6]
  int max_streams = 256;                      // calls at once on a connection, [1, 1e6]
  int max_metadata_bytes = 16 << 10;          // of a call
  // For what gRPC buffers, over all connections. When it is short, gRPC reads no more, and then
  // cuts connections off.
  int64_t memory_bytes = int64_t{256} << 20;  // [16 MiB, 1 TiB]
  // By which the process may grow in ten seconds, whatever gRPC says that it buffers: then those
  // connections end that brought more than 1 MiB meanwhile.
  int64_t memory_growth = int64_t{1536} << 20;
  std::chrono::seconds handshake_timeout{10};   // for the first bytes of HTTP/2
  std::chrono::seconds idle_timeout{600};       // for a connection without calls
  std::chrono::seconds keepalive_interval{60};  // between pings that look for dead peers
  std::chrono::seconds keepalive_timeout{20};   // for the answer
  std::chrono::seconds min_ping_interval{10};   // clients that ping more often are cut off
  std::chrono::seconds connection_age{0};       // then a client must connect again; 0: never
  std::chrono::seconds connection_grace{300};   // for calls on a connection that is too old
};

// Paths of PEM files, for all listeners.
struct TlsOptions {
  std::string certificate;  // the server's, then those between it and its authority; empty: no TLS
  std::string key;          // of the certificate
  std::string client_ca;    // authorities that clients need a certificate of; empty: they need none

  bool on() const { return !certificate.empty(); }
};

enum class LogLevel : uint8_t { kError, kWarning, kInfo, kDebug };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  std::string access_log;  // a file; "-": standard error; empty: no lines for calls
};

struct ModelSource {
  std::string name;
  std::string directory;

  bool operator==(const ModelSource&) const = default;
};

struct ServerOptions {
  std::vector<ModelSource> models;  // to be served; names differ
  TlsOptions tls;
  LogOptions log;
  // Upper bounds of the buckets of all histograms of seconds, ascending; empty: the usual ones.
  std::vector<double> latency_buckets;
  std::string api_keys;  // path of the file of API keys; empty: everybody may call
  HttpOptions http;
  std::string admin_address;  // as HttpOptions::address; empty: no admin listener
  GrpcOptions grpc;
  StateOptions states;
  BatchStoreOptions batches;
  BatcherOptions batcher;
  EncodingOptions encoding;
  RequestLimits limits;
  // After the first signal, how long requests are still taken, while readiness says no already: for
  // balancers to see it, [0, 3600].
  std::chrono::seconds drain_delay{0};
  std::chrono::seconds grace{30};  // then, for running streams, [0, 3600]
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_OPTIONS_H_
