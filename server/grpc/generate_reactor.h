// One call of Generate. Includes gRPC: for grpc_*.cc alone.
#ifndef HIPPODROME_SERVER_GRPC_GENERATE_REACTOR_H_
#define HIPPODROME_SERVER_GRPC_GENERATE_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "hippodrome/v1/generation.pb.h"
#include "server/batching/generation_batcher.h"
#include "server/grpc/courier.h"
#include "server/metrics/metrics.h"

namespace hippodrome {

grpc::Status ToGrpc(const absl::Status& status);

// Writes updates one at a time, so a slow client blocks its own call alone. Lives until gRPC is
// done with it.
class GenerateReactor : public grpc::ServerWriteReactor<v1::GenerateResponse>,
                        public std::enable_shared_from_this<GenerateReactor> {
 public:
  // Streams `generation`, or ends the call at once with its error. `courier` writes what the loop
  // thread announces. `metrics` and `courier` must outlive the call.
  static GenerateReactor* Start(absl::StatusOr<std::unique_ptr<Generation>> generation,
                                std::string model, Metrics& metrics, Courier& courier);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  GenerateReactor(std::string model, Metrics& metrics)
      : model_(std::move(model)), metrics_(metrics) {}

  void Run(std::unique_ptr<Generation> generation, Courier& courier);
  // Starts the next write, if none is under way and there is something to write.
  void Pump();
  // The error with which the call must end.
  absl::Status WriteNext();
  void Write(const StreamUpdate& update);
  // Ends the call once no write is under way. REQUIRES: mutex_ is held.
  void End(const absl::Status& status);

  const std::string model_;
  Metrics& metrics_;
  std::shared_ptr<GenerateReactor> self_;  // until OnDone()

  std::mutex mutex_;  // guards all below
  std::unique_ptr<Generation> generation_;
  v1::GenerateResponse response_;
  bool writing_ = false;
  bool finished_ = false;                // Finish() was called
  std::optional<absl::Status> outcome_;  // how the call ends, once that is known
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_GENERATE_REACTOR_H_
