#include "server/server.h"

#include <thread>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr std::chrono::milliseconds kPoll{10};
// For what has been made to reach its client.
constexpr std::chrono::seconds kFlush{5};

std::vector<std::unique_ptr<ServedModel>> Serve(std::vector<ModelParts> models,
                                                const ServerOptions& options, Metrics& metrics) {
  std::vector<std::unique_ptr<ServedModel>> served;
  for (ModelParts& model : models) {
    served.push_back(NewServedModel(std::move(model), options.batcher, options.encoding, metrics));
  }
  return served;
}

}  // namespace

Server::Server(const ServerOptions& options, std::vector<ModelParts> models)
    : handlers_(Serve(std::move(models), options, metrics_), options.limits),
      routes_(handlers_, metrics_, options.http) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      std::vector<ModelParts> models) {
  std::unique_ptr<Server> server(new Server(options, std::move(models)));
  HIPPODROME_RETURN_IF_ERROR(server->StartTransports(options));
  return server;
}

absl::Status Server::StartTransports(const ServerOptions& options) {
  const HttpHandler handler = [this](HttpRequest request) {
    return routes_.Handle(std::move(request));
  };
  HIPPODROME_ASSIGN_OR_RETURN(http_, HttpServer::Start(options.http, handler));
  HIPPODROME_ASSIGN_OR_RETURN(grpc_, GrpcServer::Start(options.grpc, handlers_, metrics_));
  return absl::OkStatus();
}

Server::~Server() = default;

void Server::Drain(std::chrono::milliseconds grace) {
  handlers_.Close();
  grpc_->SetServing(false);
  const auto end = std::chrono::steady_clock::now() + grace;
  while (handlers_.pending() > 0 && !grace_ended_.load() &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPoll);
  }
  handlers_.Abort();
  http_->Stop(kFlush);
  grpc_->Stop(kFlush);
}

}  // namespace hippodrome
