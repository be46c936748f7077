// The services of the gRPC interface that have files of their own, and what all services share.
// Includes gRPC: for this folder alone.
#ifndef HIPPODROME_SERVER_GRPC_GRPC_SERVICES_H_
#define HIPPODROME_SERVER_GRPC_GRPC_SERVICES_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/status.h"
#include "server/handlers/handlers.h"
#include "server/metrics/metrics.h"
#include "server/status_map.h"

namespace hippodrome {

// hippodrome.v1.Generation and hippodrome.v1.Encoding. What they are given must outlive them.
// Thread-safe.
std::unique_ptr<grpc::Service> NewGenerationService(Handlers& handlers, Metrics& metrics);
std::unique_ptr<grpc::Service> NewEncodingService(EncodingHandlers& handlers, Metrics& metrics);

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(GrpcCode(status)), Message(status)};
}

// Answers a call that needs no waiting.
template <typename Response>
grpc::ServerUnaryReactor* Reply(grpc::CallbackServerContext* context, Metrics& metrics,
                                const char* route, absl::StatusOr<Response> result,
                                Response* response) {
  const absl::Status status = result.status();
  if (status.ok()) {
    *response = *std::move(result);
  } else {
    metrics.CountFailure(status);
  }
  metrics.CountRequest(Api::kGrpc, route, "", ErrorCode(status));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_GRPC_SERVICES_H_
