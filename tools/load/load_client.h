// What sends the requests of a load.
#ifndef HIPPODROME_TOOLS_LOAD_LOAD_CLIENT_H_
#define HIPPODROME_TOOLS_LOAD_LOAD_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tools/client/client_security.h"
#include "tools/load/load_request.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace hippodrome {

struct LoadTarget {
  std::string address;  // HOST:PORT
  ClientSecurity security;
  std::string model;  // empty: the server's first that can
  LoadTask task = LoadTask::kGenerate;
  std::chrono::seconds timeout{600};  // of each request
  int64_t most_outstanding = 1024;    // that connections are laid out for
};

class LoadClient {
 public:
  virtual ~LoadClient() = default;
  // Sends a request, for tokens that are chosen greedily and go on over the end of the text. Sets
  // all of `record` that is an answer's, which must live until then, and calls `done` on the thread
  // of the io_context, after the return.
  virtual void Send(const LoadRequest& request, LoadRecord& record, std::function<void()> done) = 0;
};

// Over HTTP: POST /v1/completions, streamed, or /predict. Runs on `context` alone, which must
// outlive it, and keeps connections. Errors: of the target's address and certificates.
absl::StatusOr<std::unique_ptr<LoadClient>> MakeHttpLoadClient(boost::asio::io_context& context,
                                                               const LoadTarget& target);
// Over gRPC: Generation.Generate or Encoding.Classify. gRPC's own threads read. The same errors.
absl::StatusOr<std::unique_ptr<LoadClient>> MakeGrpcLoadClient(boost::asio::io_context& context,
                                                               const LoadTarget& target);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LOAD_LOAD_CLIENT_H_
