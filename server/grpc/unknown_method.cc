#include "server/grpc/unknown_method.h"

#include "absl/status/status.h"
#include "server/grpc/grpc_services.h"

namespace hippodrome {
namespace {

class Refusal : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownMethod::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const auto call = BeginCall(*context, metrics_, kOtherRoute);
  const absl::StatusOr<bool> refused =
      Admitted(access_, *context, *call, [](const Caller&) -> absl::StatusOr<bool> {
        return absl::UnimplementedError("there is no such method");
      });
  call->Finish(refused.status());
  return new Refusal(ToGrpc(refused.status(), *context));
}

}  // namespace hippodrome
