#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "engine/base/status.h"
#include "inference/open_inference.grpc.pb.h"
#include "server/grpc/grpc_services.h"
#include "server/grpc/unary_reactor.h"
#include "server/guarded.h"
#include "server/handlers/inference_handlers.h"
#include "server/metrics/metrics.h"
#include "server/serial_executor.h"

namespace hippodrome {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

class KServeService : public inference::GRPCInferenceService::CallbackService {
 public:
  KServeService(Handlers& handlers, Metrics& metrics, const AccessControl& access)
      : handlers_(handlers), inference_(handlers), metrics_(metrics), access_(access) {}

  ServerUnaryReactor* ServerLive(CallbackServerContext* context,
                                 const inference::ServerLiveRequest* request,
                                 inference::ServerLiveResponse* response) override {
    const auto call = BeginCall(*context, metrics_, "ServerLive", *request);
    const auto make = [] {
      inference::ServerLiveResponse result;
      result.set_live(true);
      return result;
    };
    return Reply<inference::ServerLiveResponse>(context, access_, *call, make, response);
  }

  ServerUnaryReactor* ServerReady(CallbackServerContext* context,
                                  const inference::ServerReadyRequest* request,
                                  inference::ServerReadyResponse* response) override {
    const auto call = BeginCall(*context, metrics_, "ServerReady", *request);
    const auto make = [this] {
      inference::ServerReadyResponse result;
      result.set_ready(handlers_.Ready().ok());
      return result;
    };
    return Reply<inference::ServerReadyResponse>(context, access_, *call, make, response);
  }

  ServerUnaryReactor* ModelReady(CallbackServerContext* context,
                                 const inference::ModelReadyRequest* request,
                                 inference::ModelReadyResponse* response) override {
    const auto call = BeginCall(*context, metrics_, "ModelReady", *request);
    return Reply<inference::ModelReadyResponse>(
        context, access_, *call, [&] { return Ready(*request); }, response);
  }

  ServerUnaryReactor* ServerMetadata(CallbackServerContext* context,
                                     const inference::ServerMetadataRequest* request,
                                     inference::ServerMetadataResponse* response) override {
    const auto call = BeginCall(*context, metrics_, "ServerMetadata", *request);
    return Reply<inference::ServerMetadataResponse>(
        context, access_, *call, [this] { return inference_.ServerMetadata(); }, response);
  }

  ServerUnaryReactor* ModelMetadata(CallbackServerContext* context,
                                    const inference::ModelMetadataRequest* request,
                                    inference::ModelMetadataResponse* response) override {
    const auto call = BeginCall(*context, metrics_, "ModelMetadata", *request);
    const auto make = [&] { return inference_.ModelMetadata(request->name(), request->version()); };
    return Reply<inference::ModelMetadataResponse>(context, access_, *call, make, response);
  }

  ServerUnaryReactor* ModelInfer(CallbackServerContext* context,
                                 const inference::ModelInferRequest* request,
                                 inference::ModelInferResponse* response) override {
    auto call = BeginCall(*context, metrics_, "ModelInfer", *request);
    auto answer = Admitted(access_, *context, *call, [&](const Caller& caller) {
      return inference_.Infer(*request, caller);
    });
    return UnaryReactor<inference::ModelInferResponse>::Start(
        *context, std::move(call), std::move(answer), response, executor_);
  }

 private:
  // False for a model that is there and does not run.
  absl::StatusOr<inference::ModelReadyResponse> Ready(
      const inference::ModelReadyRequest& request) const {
    HIPPODROME_RETURN_IF_ERROR(
        inference_.ModelMetadata(request.name(), request.version()).status());
    inference::ModelReadyResponse result;
    result.set_ready(inference_.ModelReady(request.name(), request.version()).ok());
    return result;
  }

  Handlers& handlers_;
  InferenceHandlers inference_;
  Metrics& metrics_;
  const AccessControl& access_;
  SerialExecutor executor_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewKServeService(Handlers& handlers, Metrics& metrics,
                                                const AccessControl& access) {
  return std::make_unique<KServeService>(handlers, metrics, access);
}

}  // namespace hippodrome
