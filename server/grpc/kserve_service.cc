#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "engine/base/status.h"
#include "inference/open_inference.grpc.pb.h"
#include "server/grpc/grpc_services.h"
#include "server/grpc/serial_executor.h"
#include "server/grpc/unary_reactor.h"
#include "server/guarded.h"
#include "server/handlers/inference_handlers.h"
#include "server/metrics/metrics.h"

namespace hippodrome {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

class KServeService : public inference::GRPCInferenceService::CallbackService {
 public:
  KServeService(Handlers& handlers, Metrics& metrics)
      : handlers_(handlers), inference_(handlers), metrics_(metrics) {}

  ServerUnaryReactor* ServerLive(CallbackServerContext* context,
                                 const inference::ServerLiveRequest*,
                                 inference::ServerLiveResponse* response) override {
    inference::ServerLiveResponse result;
    result.set_live(true);
    return Reply<inference::ServerLiveResponse>(context, metrics_, "ServerLive", std::move(result),
                                                response);
  }

  ServerUnaryReactor* ServerReady(CallbackServerContext* context,
                                  const inference::ServerReadyRequest*,
                                  inference::ServerReadyResponse* response) override {
    inference::ServerReadyResponse result;
    result.set_ready(handlers_.Ready().ok());
    return Reply<inference::ServerReadyResponse>(context, metrics_, "ServerReady",
                                                 std::move(result), response);
  }

  ServerUnaryReactor* ModelReady(CallbackServerContext* context,
                                 const inference::ModelReadyRequest* request,
                                 inference::ModelReadyResponse* response) override {
    return Reply(context, metrics_, "ModelReady", Ready(*request), response);
  }

  ServerUnaryReactor* ServerMetadata(CallbackServerContext* context,
                                     const inference::ServerMetadataRequest*,
                                     inference::ServerMetadataResponse* response) override {
    return Reply<inference::ServerMetadataResponse>(context, metrics_, "ServerMetadata",
                                                    inference_.ServerMetadata(), response);
  }

  ServerUnaryReactor* ModelMetadata(CallbackServerContext* context,
                                    const inference::ModelMetadataRequest* request,
                                    inference::ModelMetadataResponse* response) override {
    return Reply(context, metrics_, "ModelMetadata",
                 inference_.ModelMetadata(request->name(), request->version()), response);
  }

  ServerUnaryReactor* ModelInfer(CallbackServerContext* context,
                                 const inference::ModelInferRequest* request,
                                 inference::ModelInferResponse* response) override {
    auto answer = Guarded([&] { return inference_.Infer(*request, CallerOf(*context)); });
    return UnaryReactor<inference::ModelInferResponse>::Start(*context, std::move(answer), response,
                                                              "ModelInfer", metrics_, executor_);
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
  SerialExecutor executor_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewKServeService(Handlers& handlers, Metrics& metrics) {
  return std::make_unique<KServeService>(handlers, metrics);
}

}  // namespace hippodrome
