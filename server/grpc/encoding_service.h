// hippodrome.v1.Encoding over gRPC. Includes gRPC: for grpc_*.cc alone.
#ifndef HIPPODROME_SERVER_GRPC_ENCODING_SERVICE_H_
#define HIPPODROME_SERVER_GRPC_ENCODING_SERVICE_H_

#include <memory>

#include "server/handlers/encoding_handlers.h"
#include "server/metrics/metrics.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace hippodrome {

// Both must outlive the service. Thread-safe.
std::unique_ptr<grpc::Service> NewEncodingService(EncodingHandlers& handlers, Metrics& metrics);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_ENCODING_SERVICE_H_
