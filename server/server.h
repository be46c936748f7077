// The whole server: models, handlers, both transports, and their end.
#ifndef HIPPODROME_SERVER_SERVER_H_
#define HIPPODROME_SERVER_SERVER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/access/access_control.h"
#include "server/batches/batch_runner.h"
#include "server/batches/batch_store.h"
#include "server/grpc/grpc_server.h"
#include "server/handlers/handlers.h"
#include "server/handlers/model_repository.h"
#include "server/handlers/served_model.h"
#include "server/http/http_server.h"
#include "server/load_model.h"
#include "server/metrics/batch_metrics.h"
#include "server/metrics/metrics.h"
#include "server/metrics/state_store_metrics.h"
#include "server/options.h"
#include "server/reload.h"
#include "server/routes/admin_routes.h"
#include "server/routes/http_routes.h"
#include "server/tls/tls_files.h"

namespace hippodrome {

// Thread-safe.
class Server {
 public:
  // Serves `models` at both addresses, and later those that operators load, by `load`. REQUIRES:
  // names differ. Errors: those of ReadApiKeys(), TlsFiles::Open(), OpenStateStore(),
  // ReadStateKey(), BatchStore::Open(),
  // HttpServer::Start() and GrpcServer::Start().
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       std::vector<ModelParts> models,
                                                       const LoadOptions& load = {});
  // Stops at once, where Drain() was not called.
  ~Server();

  // HOST:PORT as bound.
  const std::string& http_address() const { return http_->address(); }
  const std::string& grpc_address() const { return grpc_->address(); }
  // Empty where there is no admin listener.
  std::string admin_address() const { return admin_ == nullptr ? "" : admin_->address(); }
  ModelRepository& repository() { return repository_; }

  // Adds what Reload() takes anew; must not change the server before Start() has returned.
  void Add(Reloadable reloadable) { reloadables_.Add(std::move(reloadable)); }
  // Takes anew what can change while the server runs, as `options` say it now. Errors: what is
  // wrong with it; then nothing has changed. Else what had changed, for the log.
  absl::StatusOr<std::vector<std::string>> Reload(const ServerOptions& options) {
    return reloadables_.Reload(options);
  }

  // Says that it is not ready, and after `delay` refuses new requests with UNAVAILABLE; waits until
  // those that are here have finished, or for `grace`, in the last third of which (30 s at most)
  // those leave that another server can go on with: Handlers::Migrate(), of which states that are
  // on their way may take 5 s longer; then ends the rest with an error and stops all transports,
  // the admin listener last. EndGracePeriod() ends all waits. Returns how many requests were cut.
  int64_t Drain(std::chrono::milliseconds delay, std::chrono::milliseconds grace);
  // Ends the waiting of Drain() now.
  void EndGracePeriod() { grace_ended_.store(true); }
  // What an operator should know: a listener that other machines can reach unprotected,
  // certificates that are not valid now. One line each.
  std::vector<std::string> Warnings() const;

 private:
  Server(const ServerOptions& options, std::vector<ModelParts> models, const LoadOptions& load);
  absl::Status StartBatches(const ServerOptions& options);
  absl::Status StartTransports(const ServerOptions& options);
  template <typename Routes>
  absl::StatusOr<std::unique_ptr<HttpServer>> StartHttp(const HttpOptions& options, Routes& routes);
  // Waits for `time`, or until the grace period is ended, or `done`.
  void Wait(std::chrono::milliseconds time, const std::function<bool()>& done);

  std::atomic<bool> grace_ended_ = false;
  std::shared_ptr<TlsFiles> tls_;  // null: none
  Metrics metrics_;
  AccessControl access_;
  StateStoreMetrics state_metrics_;
  Handlers handlers_;
  ModelRepository repository_;
  HttpRoutes routes_;
  AdminRoutes admin_routes_;
  BatchMetrics batch_metrics_;
  std::unique_ptr<BatchStore> batch_store_;  // null: none
  std::unique_ptr<BatchRunner> batches_;     // the same
  std::unique_ptr<HttpServer> admin_;        // null: none
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<GrpcServer> grpc_;
  Reloadables reloadables_;  // goes first: they refer to the others
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_SERVER_H_
