#include "server/grpc/unknown_method.h"

#include "absl/status/status.h"
#include "server/grpc/grpc_services.h"

namespace hippodrome {
namespace {

class Refusal : public grpc::ServerGenericBidiReactor {
 public:
  Refusal() { Finish({grpc::StatusCode::UNIMPLEMENTED, "there is no such method"}); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownMethod::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  BeginCall(*context, metrics_, kOtherRoute)->Finish(absl::UnimplementedError(""));
  return new Refusal();
}

}  // namespace hippodrome
