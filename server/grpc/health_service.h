// grpc.health.v1.Health. Includes gRPC: for this folder alone.
#ifndef HIPPODROME_SERVER_GRPC_HEALTH_SERVICE_H_
#define HIPPODROME_SERVER_GRPC_HEALTH_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/grpc/live_calls.h"

namespace hippodrome {

class HealthWatch;

// All services are well together, or none is. gRPC's own service knows no List, and keeps a server
// that stops waiting for the watches. Thread-safe.
class HealthService : public grpc::health::v1::Health::CallbackService {
 public:
  // `services` are full names; "", the whole server, is always there. Not serving yet.
  explicit HealthService(std::vector<std::string> services);
  ~HealthService() override;

  void SetServing(bool serving);
  // Ends the watches, and those that come.
  void Stop();

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const grpc::health::v1::HealthListRequest* request,
                                 grpc::health::v1::HealthListResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  bool Knows(const std::string& service) const;
  grpc::health::v1::HealthCheckResponse::ServingStatus Now() const;

  const std::vector<std::string> services_;
  std::atomic<bool> serving_ = false;
  LiveCalls<HealthWatch> watches_;  // of services that exist
  LiveCalls<HealthWatch> strays_;   // of those that do not
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_HEALTH_SERVICE_H_
