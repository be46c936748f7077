// grpc.health.v1.Health. Includes gRPC: for this folder alone.
#ifndef HIPPODROME_SERVER_GRPC_HEALTH_SERVICE_H_
#define HIPPODROME_SERVER_GRPC_HEALTH_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/grpc/live_calls.h"

namespace hippodrome {

class HealthWatch;

// All services are well together, or none is. gRPC's own service knows no List, and keeps a server
// that stops waiting for the watches. Thread-safe, with a thread of its own.
class HealthService : public grpc::health::v1::Health::CallbackService {
 public:
  // `services` are full names; "", the whole server, is always there. Not serving yet. `ready` is
  // asked at each call, and for watches five times a second, from any thread until Stop().
  HealthService(std::vector<std::string> services, std::function<bool()> ready);
  ~HealthService() override;

  // Whether it serves while it is ready.
  void SetServing(bool serving);
  // Ends the watches, and those that come. Idempotent.
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
  grpc::health::v1::HealthCheckResponse::ServingStatus Now();
  // REQUIRES, of the next two: mutex_ is held, so that what watches are told last is the latest.
  grpc::health::v1::HealthCheckResponse::ServingStatus Status() const;
  void Tell();
  void Follow();

  const std::vector<std::string> services_;
  const std::function<bool()> ready_;
  LiveCalls<HealthWatch> watches_;  // of services that exist
  LiveCalls<HealthWatch> strays_;   // of those that do not

  std::mutex mutex_;  // guards the next four
  std::condition_variable wake_;
  bool serving_ = false;
  bool served_ = false;  // at the last look
  bool stopping_ = false;
  std::thread thread_;  // Follow()
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_HEALTH_SERVICE_H_
