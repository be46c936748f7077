// Answers calls of methods that there are not. Includes gRPC: for this folder alone.
#ifndef HIPPODROME_SERVER_GRPC_UNKNOWN_METHOD_H_
#define HIPPODROME_SERVER_GRPC_UNKNOWN_METHOD_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "server/access/access_control.h"
#include "server/metrics/metrics.h"

namespace hippodrome {

// UNIMPLEMENTED, as gRPC itself would answer, but counted and with the ids of the call.
class UnknownMethod : public grpc::CallbackGenericService {
 public:
  // Both must outlive the calls. To learn that there is no such method takes a key too.
  UnknownMethod(Metrics& metrics, const AccessControl& access)
      : metrics_(metrics), access_(access) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  Metrics& metrics_;
  const AccessControl& access_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_UNKNOWN_METHOD_H_
