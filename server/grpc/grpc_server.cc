#include "server/grpc/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "engine/base/status.h"
#include "hippodrome/v1/models.grpc.pb.h"
#include "server/address.h"
#include "server/grpc/grpc_services.h"

namespace hippodrome {
namespace {

constexpr int kMaxStreamsPerConnection = 1024;

class ModelsService : public v1::Models::CallbackService {
 public:
  ModelsService(Handlers& handlers, Metrics& metrics) : handlers_(handlers), metrics_(metrics) {}

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListModelsRequest*,
                                 v1::ListModelsResponse* response) override {
    return Reply<v1::ListModelsResponse>(context, metrics_, "List", handlers_.ListModels(),
                                         response);
  }

  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const v1::GetModelRequest* request, v1::Model* response) override {
    return Reply(context, metrics_, "Get", handlers_.GetModel(request->name()), response);
  }

 private:
  Handlers& handlers_;
  Metrics& metrics_;
};

// gRPC's own account of a port that is taken is several lines long.
class QuietLog {
 public:
  QuietLog() {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
  ~QuietLog() { gpr_set_log_function(nullptr); }
};

}  // namespace

class GrpcServer::Impl {
 public:
  Impl(Handlers& handlers, Metrics& metrics)
      : generation_(NewGenerationService(handlers, metrics)),
        encoding_(NewEncodingService(handlers.encoding(), metrics)),
        models_(handlers, metrics) {}

  absl::Status Start(const GrpcOptions& options);
  void SetServing(bool serving);
  void Stop(std::chrono::milliseconds grace) {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + grace);
  }
  const std::string& address() const { return address_; }

 private:
  std::unique_ptr<grpc::Service> generation_;
  std::unique_ptr<grpc::Service> encoding_;
  ModelsService models_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

absl::Status GrpcServer::Impl::Start(const GrpcOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(HostPort where, ParseAddress(options.address));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.RegisterService(generation_.get());
  builder.RegisterService(encoding_.get());
  builder.RegisterService(&models_);
  {
    const QuietLog quiet;
    server_ = builder.BuildAndStart();
  }
  if (server_ == nullptr || port == 0) {
    return Unavailable("cannot listen on gRPC address " + options.address +
                       ": it is in use or does not exist");
  }
  where.port = static_cast<uint16_t>(port);
  address_ = ToText(where);
  SetServing(true);
  return absl::OkStatus();
}

void GrpcServer::Impl::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus(serving);
  for (const char* service :
       {"hippodrome.v1.Encoding", "hippodrome.v1.Generation", "hippodrome.v1.Models"}) {
    health->SetServingStatus(service, serving);
  }
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcOptions& options,
                                                              Handlers& handlers,
                                                              Metrics& metrics) {
  auto impl = std::make_unique<Impl>(handlers, metrics);
  HIPPODROME_RETURN_IF_ERROR(impl->Start(options));
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(impl)));
}

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

GrpcServer::~GrpcServer() { Stop(std::chrono::milliseconds(0)); }

const std::string& GrpcServer::address() const { return impl_->address(); }

void GrpcServer::SetServing(bool serving) { impl_->SetServing(serving); }

void GrpcServer::Stop(std::chrono::milliseconds grace) { impl_->Stop(grace); }

}  // namespace hippodrome
