// The services of the gRPC interface that have files of their own, and what all services share.
// Includes gRPC: for this folder alone.
#ifndef HIPPODROME_SERVER_GRPC_GRPC_SERVICES_H_
#define HIPPODROME_SERVER_GRPC_GRPC_SERVICES_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/status.h"
#include "server/access/access_control.h"
#include "server/address.h"
#include "server/batching/caller.h"
#include "server/calls/call_record.h"
#include "server/guarded.h"
#include "server/handlers/handlers.h"
#include "server/metrics/metrics.h"
#include "server/status_map.h"

namespace hippodrome {

// hippodrome.v1.Generation, hippodrome.v1.Encoding, hippodrome.v1.States and
// inference.GRPCInferenceService. What they are given must outlive them. Thread-safe.
std::unique_ptr<grpc::Service> NewGenerationService(Handlers& handlers, Metrics& metrics,
                                                    const AccessControl& access);
std::unique_ptr<grpc::Service> NewEncodingService(EncodingHandlers& handlers, Metrics& metrics,
                                                  const AccessControl& access);
std::unique_ptr<grpc::Service> NewKServeService(Handlers& handlers, Metrics& metrics,
                                                const AccessControl& access);
std::unique_ptr<grpc::Service> NewStatesService(Handlers& handlers, Metrics& metrics,
                                                const AccessControl& access);

// How a call ends. Adds the trailing metadata `retry-after`, in seconds, where trying again helps.
inline grpc::Status ToGrpc(const absl::Status& status, grpc::CallbackServerContext& context) {
  if (status.ok()) return grpc::Status::OK;
  if (const int seconds = RetryAfterSeconds(status); seconds > 0) {
    context.AddTrailingMetadata("retry-after", std::to_string(seconds));
  }
  return {static_cast<grpc::StatusCode>(GrpcCode(status)), Message(status)};
}

// What a call says of who makes it: as HTTP's field, several of them joined by commas.
std::optional<std::string> AuthorizationOf(const grpc::CallbackServerContext& context);

// Who calls, with what is allowed, and by when the answer must be there.
inline Caller CallerOf(const grpc::CallbackServerContext& context,
                       const std::shared_ptr<CallPermit>& permit) {
  const std::string peer = context.peer();  // ipv4:192.0.2.7:50000, ipv6:%5B::1%5D:50000, unix:...
  const size_t scheme = peer.find(':') + 1;
  std::string host = peer.substr(scheme, peer.rfind(':') - scheme);
  if (host.starts_with("%5B")) host = host.substr(3, host.size() - 6);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const auto left = context.deadline() - std::chrono::system_clock::now();
  const auto now = Caller::Clock::now();
  const bool endless = left >= Caller::Clock::time_point::max() - now;
  Caller caller(Api::kGrpc, permit == nullptr ? ClientOf(host) : permit->key(),
                endless ? Caller::Clock::time_point::max() : now + left, permit);
  if (permit != nullptr) caller.key = permit->key();
  return caller;
}

// Tells a call that its client gave up from one whose deadline passed: gRPC cancels both.
class CancelReason {
 public:
  // When the call begins. `context` is the call's.
  explicit CancelReason(const grpc::CallbackServerContext& context) : context_(context) {}

  absl::Status operator()() const {
    // The client's clock is often first: the call had to come here, and its deadline was sent in
    // three digits, rounded up.
    const auto rounding = (Caller::Clock::now() - begin_) / 64 + std::chrono::milliseconds(100);
    // gRPC tells deadlines by the wall clock of this moment, wherever that was set meanwhile.
    return context_.deadline() <= std::chrono::system_clock::now() + rounding
               ? absl::DeadlineExceededError("the client's deadline has passed")
               : absl::CancelledError("the client cancelled the call");
  }

 private:
  const grpc::CallbackServerContext& context_;
  const Caller::Clock::time_point begin_ = Caller::Clock::now();
};

// Begins the record of a call. Takes over the ids that the client sent, each once, and tells it
// those of the call.
std::unique_ptr<CallRecord> BeginCall(grpc::CallbackServerContext& context, Metrics& metrics,
                                      const char* route);
// The same for a call that comes with its request.
template <typename Request>
std::unique_ptr<CallRecord> BeginCall(grpc::CallbackServerContext& context, Metrics& metrics,
                                      const char* route, const Request& request) {
  auto call = BeginCall(context, metrics, route);
  call->Received(static_cast<int64_t>(request.ByteSizeLong()));
  return call;
}

// The one way for methods to work: the result of begin(caller), a StatusOr, for a caller that may
// call; else why it may not, and `begin` is not called. `call` holds the permit.
template <typename Begin>
auto Admitted(const AccessControl& access, const grpc::CallbackServerContext& context,
              CallRecord& call, const Begin& begin) -> decltype(begin(Caller())) {
  return Guarded([&]() -> decltype(begin(Caller())) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<CallPermit> permit,
                                access.Admit(AuthorizationOf(context), Access::kKey));
    if (permit != nullptr) call.set_key(permit->key());
    call.Hold(permit);
    return begin(CallerOf(context, permit));
  });
}

// Answers a call that needs no waiting, with what make() returns.
template <typename Response>
grpc::ServerUnaryReactor* Reply(grpc::CallbackServerContext* context, const AccessControl& access,
                                CallRecord& call,
                                const std::function<absl::StatusOr<Response>()>& make,
                                Response* response) {
  absl::StatusOr<Response> result =
      Admitted(access, *context, call, [&](const Caller&) { return make(); });
  call.Release();
  const absl::Status status = result.status();
  if (status.ok()) {
    *response = *std::move(result);
    call.Sent(static_cast<int64_t>(response->ByteSizeLong()));
  }
  call.Finish(status);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status, *context));
  return reactor;
}

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_GRPC_SERVICES_H_
