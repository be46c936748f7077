// grpc.reflection.v1.ServerReflection, and the same as v1alpha. Includes gRPC: for this folder
// alone.
#ifndef HIPPODROME_SERVER_GRPC_REFLECTION_SERVICE_H_
#define HIPPODROME_SERVER_GRPC_REFLECTION_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/access/access_control.h"
#include "server/grpc/live_calls.h"
#include "server/metrics/metrics.h"

namespace hippodrome {

class ReflectionStream;

// Describes what is compiled in. gRPC's own service has v1alpha alone. Thread-safe.
class Reflection {
 public:
  using Reactor = grpc::ServerBidiReactor<grpc::reflection::v1::ServerReflectionRequest,
                                          grpc::reflection::v1::ServerReflectionResponse>;

  // `services`: the full names that are listed. What it is given otherwise must outlive it.
  Reflection(std::vector<std::string> services, Metrics& metrics, const AccessControl& access);
  ~Reflection();

  // Both must be registered, and live no longer than this object.
  grpc::Service& v1() { return v1_; }
  grpc::Service& v1alpha() { return v1alpha_; }
  // Ends the streams, and those that come.
  void Stop();

 private:
  template <typename Base>
  class Service : public Base {
   public:
    explicit Service(Reflection& reflection) : reflection_(reflection) {}
    Reactor* ServerReflectionInfo(grpc::CallbackServerContext* context) override {
      return reflection_.Begin(*context);
    }

   private:
    Reflection& reflection_;
  };

  Reactor* Begin(grpc::CallbackServerContext& context);

  const std::vector<std::string> services_;
  Metrics& metrics_;
  const AccessControl& access_;
  LiveCalls<ReflectionStream> streams_;
  Service<grpc::reflection::v1::ServerReflection::CallbackService> v1_{*this};
  Service<grpc::reflection::v1alpha::ServerReflection::CallbackService> v1alpha_{*this};
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_REFLECTION_SERVICE_H_
