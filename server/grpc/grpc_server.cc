#include "server/grpc/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <atomic>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "hippodrome/v1/encoding.grpc.pb.h"
#include "hippodrome/v1/generation.grpc.pb.h"
#include "hippodrome/v1/models.grpc.pb.h"
#include "hippodrome/v1/states.grpc.pb.h"
#include "inference/open_inference.grpc.pb.h"
#include "server/grpc/accept_loop.h"
#include "server/grpc/grpc_services.h"
#include "server/grpc/health_service.h"
#include "server/grpc/reflection_service.h"
#include "server/grpc/tls_credentials.h"
#include "server/grpc/unknown_method.h"
#include "server/log/log.h"
#include "server/metrics/connection_metrics.h"

namespace hippodrome {
namespace {

class ModelsService : public v1::Models::CallbackService {
 public:
  ModelsService(Handlers& handlers, Metrics& metrics, const AccessControl& access)
      : handlers_(handlers), metrics_(metrics), access_(access) {}

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListModelsRequest* request,
                                 v1::ListModelsResponse* response) override {
    const auto call = BeginCall(*context, metrics_, "List", *request);
    return Reply<v1::ListModelsResponse>(
        context, access_, *call, [this] { return handlers_.ListModels(); }, response);
  }

  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const v1::GetModelRequest* request, v1::Model* response) override {
    const auto call = BeginCall(*context, metrics_, "Get", *request);
    return Reply<v1::Model>(
        context, access_, *call, [&] { return handlers_.GetModel(request->name()); }, response);
  }

 private:
  Handlers& handlers_;
  Metrics& metrics_;
  const AccessControl& access_;
};

// gRPC has a line for each call that a hostile peer spoils; one in a second says enough. Its text
// may have addresses and what peers sent: its place in gRPC's sources tells what it is about.
void LogSparsely(gpr_log_func_args* line) {
  using Seconds = std::chrono::seconds;
  static std::atomic<int64_t> last = 0;
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t now = std::chrono::duration_cast<Seconds>(since).count();
  if (last.exchange(now) == now) return;
  const LogLevel level = line->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kWarning
                         : line->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                                   : LogLevel::kDebug;
  const std::string_view path = line->file;
  Log(LogLine(level, "grpc")
          .Text("file", path.substr(path.rfind('/') + 1))
          .Integer("line", line->line));
}

// A message of 500 KB that says it is compressed could fill 500 MB, so none is taken: a call that
// says so ends with UNIMPLEMENTED, and nothing inflates what comes without saying so.
void RefuseCompression(grpc::ServerBuilder& builder) {
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

int Milliseconds(std::chrono::milliseconds time) { return static_cast<int>(time.count()); }

void Limit(const GrpcOptions& options, grpc::ServerBuilder& builder) {
  grpc::ResourceQuota quota("hippodrome");
  quota.Resize(static_cast<size_t>(options.memory_bytes));
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, options.max_metadata_bytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Milliseconds(options.handshake_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(options.idle_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_interval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             Milliseconds(options.keepalive_timeout));
  // Clients may ping while they have no calls; of those that ping too often none is borne.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(options.min_ping_interval));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 2);
  if (options.connection_age.count() > 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                               Milliseconds(options.connection_age));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                               Milliseconds(options.connection_grace));
  }
}

// Full names, as health and reflection say them.
std::vector<std::string> OwnServices() {
  return {v1::Encoding::service_full_name(), v1::Generation::service_full_name(),
          v1::Models::service_full_name(), v1::States::service_full_name(),
          inference::GRPCInferenceService::service_full_name()};
}

std::vector<std::string> AllServices() {
  std::vector<std::string> names = OwnServices();
  names.emplace_back(grpc::health::v1::Health::service_full_name());
  names.emplace_back(grpc::reflection::v1::ServerReflection::service_full_name());
  names.emplace_back(grpc::reflection::v1alpha::ServerReflection::service_full_name());
  return names;
}

}  // namespace

class GrpcServer::Impl {
 public:
  Impl(Handlers& handlers, Metrics& metrics, const AccessControl& access,
       std::shared_ptr<const TlsFiles> tls)
      : encrypted_(tls != nullptr),
        credentials_(tls == nullptr ? grpc::InsecureServerCredentials()
                                    : NewTlsCredentials(std::move(tls))),
        connection_metrics_(metrics.registry()),
        generation_(NewGenerationService(handlers, metrics, access)),
        encoding_(NewEncodingService(handlers.encoding(), metrics, access)),
        kserve_(NewKServeService(handlers, metrics, access)),
        states_(NewStatesService(handlers, metrics, access)),
        models_(handlers, metrics, access),
        unknown_(metrics, access),
        health_(OwnServices(), [&handlers] { return handlers.Ready().ok(); }),
        reflection_(AllServices(), metrics, access) {}

  absl::Status Start(const GrpcOptions& options);
  void SetServing(bool serving) { health_.SetServing(serving); }
  void RefuseConnections() { accept_loop_->Refuse(); }
  void Stop(std::chrono::milliseconds grace);
  const std::string& address() const { return accept_loop_->address(); }

 private:
  const bool encrypted_;
  const std::shared_ptr<grpc::ServerCredentials> credentials_;
  ConnectionMetrics connection_metrics_;
  std::unique_ptr<grpc::Service> generation_;
  std::unique_ptr<grpc::Service> encoding_;
  std::unique_ptr<grpc::Service> kserve_;
  std::unique_ptr<grpc::Service> states_;
  ModelsService models_;
  UnknownMethod unknown_;
  HealthService health_;
  Reflection reflection_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<AcceptLoop> accept_loop_;
};

absl::Status GrpcServer::Impl::Start(const GrpcOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(accept_loop_, AcceptLoop::Listen(options.address,
                                                               {options.max_connections,
                                                                options.max_connections_per_address,
                                                                options.memory_growth, encrypted_},
                                                               connection_metrics_));
  gpr_set_log_function(LogSparsely);
  grpc::ServerBuilder builder;
  RefuseCompression(builder);
  Limit(options, builder);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials_);
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{
           generation_.get(), encoding_.get(), kserve_.get(), states_.get(), &models_, &health_,
           &reflection_.v1(), &reflection_.v1alpha()}) {
    builder.RegisterService(service);
  }
  builder.RegisterCallbackGenericService(&unknown_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return Internal("gRPC did not start");
  SetServing(true);
  accept_loop_->Start([acceptor = acceptor_.get()](int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    acceptor->HandleNewConnection(&connection);
  });
  return absl::OkStatus();
}

void GrpcServer::Impl::Stop(std::chrono::milliseconds grace) {
  if (server_ == nullptr) return;
  accept_loop_->Stop();
  health_.Stop();
  reflection_.Stop();
  server_->Shutdown(std::chrono::system_clock::now() + grace);
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcOptions& options,
                                                              Handlers& handlers, Metrics& metrics,
                                                              const AccessControl& access,
                                                              std::shared_ptr<const TlsFiles> tls) {
  auto impl = std::make_unique<Impl>(handlers, metrics, access, std::move(tls));
  HIPPODROME_RETURN_IF_ERROR(impl->Start(options));
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(impl)));
}

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

GrpcServer::~GrpcServer() { Stop(std::chrono::milliseconds(0)); }

const std::string& GrpcServer::address() const { return impl_->address(); }

void GrpcServer::SetServing(bool serving) { impl_->SetServing(serving); }

void GrpcServer::RefuseConnections() { impl_->RefuseConnections(); }

void GrpcServer::Stop(std::chrono::milliseconds grace) { impl_->Stop(grace); }

}  // namespace hippodrome
