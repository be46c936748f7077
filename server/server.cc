#include "server/server.h"

#include <algorithm>
#include <initializer_list>
#include <thread>
#include <utility>

#include "engine/base/status.h"
#include "server/address.h"
#include "server/log/log.h"
#include "server/states/open_state_store.h"

namespace hippodrome {
namespace {

constexpr std::chrono::milliseconds kPoll{10};
// For what has been made to reach its client.
constexpr std::chrono::seconds kFlush{5};
// Of the grace period, for states to be kept: a third, and so much at most.
constexpr std::chrono::milliseconds kMostSaving{30000};
// Of a batch, that are answered at once: a few batches of an encoder, and the slots of a decoder.
constexpr int64_t kMostBatchCalls = 64;

std::vector<std::unique_ptr<ServedModel>> Serve(std::vector<ModelParts> models,
                                                const ServerOptions& options, Metrics& metrics) {
  std::vector<std::unique_ptr<ServedModel>> served;
  for (ModelParts& model : models) {
    served.push_back(NewServedModel(std::move(model), options.batcher, options.encoding, metrics));
  }
  return served;
}

// What is wrong with a listener that others can reach; "" where nothing is.
std::string ExposureWarning(const std::string& listener, const std::string& address, bool tls,
                            bool keys) {
  if ((tls && keys) || IsLoopback(ParseAddress(address)->host)) return "";
  std::string why;
  if (!tls) why += " without TLS: what is sent can be read and changed on the way (--tls-cert)";
  if (!tls && !keys) why += ", and";
  if (!keys) why += " without API keys: whoever reaches it may call (--api-keys)";
  return "the " + listener + " listener at " + address + " can be reached from other machines" +
         why;
}

// How models are loaded while the server runs, and served as those that it began with.
ModelRepository::Functions RepositoryFunctions(const ServerOptions& options,
                                               const LoadOptions& load, Metrics& metrics) {
  return {.read =
              [load](const ModelSource& source, const LoadProgress& progress) {
                return LoadModel(source.name, source.directory, load, progress);
              },
          .serve =
              [batcher = options.batcher, encoding = options.encoding, &metrics](ModelParts parts) {
                return NewServedModel(std::move(parts), batcher, encoding, metrics);
              },
          .report =
              [](const std::string& line, bool failed) {
                const LogLevel level = failed ? LogLevel::kWarning : LogLevel::kInfo;
                Log(LogLine(level, "models").Text("message", line));
              }};
}

// Few connections and small requests, on a thread of their own.
HttpOptions AdminOptions(const std::string& address) {
  HttpOptions options;
  options.address = address;
  options.listener = "admin";
  options.max_body_bytes = int64_t{64} << 10;
  options.max_connections = 64;
  options.max_connections_per_address = 0;
  options.threads = 1;
  return options;
}

}  // namespace

Server::Server(const ServerOptions& options, std::vector<ModelParts> models,
               const LoadOptions& load)
    : metrics_(options.latency_buckets.empty() ? DefaultLatencyBuckets() : options.latency_buckets),
      access_(options.api_keys, metrics_),
      state_metrics_(metrics_.registry()),
      handlers_(Serve(std::move(models), options, metrics_), options.limits, options.states),
      repository_(handlers_.models(), metrics_, RepositoryFunctions(options, load, metrics_)),
      routes_(handlers_, metrics_, access_, options.http, options.batches),
      admin_routes_(routes_, repository_, access_),
      batch_metrics_(metrics_.registry(), BatchStatusNames()) {
  reloadables_.Add(
      {"models", [this](const ServerOptions& now) { return repository_.Match(now.models); }});
  reloadables_.Add(
      {"keys", [this](const ServerOptions& now) { return access_.Prepare(now.api_keys); }});
  reloadables_.Add(
      {"state key", [this](const ServerOptions&) { return handlers_.states().PrepareKey(); }});
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      std::vector<ModelParts> models,
                                                      const LoadOptions& load) {
  std::unique_ptr<Server> server(new Server(options, std::move(models), load));
  HIPPODROME_ASSIGN_OR_RETURN(
      std::unique_ptr<StateStore> store,
      OpenStateStore(options.states.store, options.states.store_bytes, server->state_metrics_));
  StateHandlers& states = server->handlers_.states();
  states.SetStore(std::move(store));
  HIPPODROME_ASSIGN_OR_RETURN(const std::function<void()> use_key, states.PrepareKey());
  if (use_key) use_key();
  HIPPODROME_RETURN_IF_ERROR(server->access_.Reload());
  HIPPODROME_RETURN_IF_ERROR(server->StartBatches(options));
  HIPPODROME_RETURN_IF_ERROR(server->StartTransports(options));
  return server;
}

template <typename Routes>
absl::StatusOr<std::unique_ptr<HttpServer>> Server::StartHttp(const HttpOptions& options,
                                                              Routes& routes) {
  const auto route = [&routes](HttpRequest& head) { routes.Route(head); };
  const auto handle = [&routes](HttpRequest request) { return routes.Handle(std::move(request)); };
  return HttpServer::Start(options, handle, &metrics_, tls_, route);
}

absl::Status Server::StartBatches(const ServerOptions& options) {
  if (options.batches.directory.empty()) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(batch_store_, BatchStore::Open(options.batches, batch_metrics_));
  routes_.batches().SetStore(*batch_store_);
  // Queues keep room for calls that somebody waits for.
  const int64_t queue = std::min(options.batcher.max_queue, options.encoding.max_queue);
  batches_ = std::make_unique<BatchRunner>(BatchRunner::Options{
      .store = *batch_store_,
      .metrics = batch_metrics_,
      .answer = [this](HttpRequest request) { return routes_.PassOn(std::move(request)); },
      .admit = [this](const std::string& key) { return access_.AdmitJob(key); },
      .most_calls = std::clamp<int64_t>(queue / 4, 1, kMostBatchCalls),
      .most_line_bytes = options.http.max_body_bytes});
  return absl::OkStatus();
}

absl::Status Server::StartTransports(const ServerOptions& options) {
  if (options.tls.on()) {
    HIPPODROME_ASSIGN_OR_RETURN(tls_, TlsFiles::Open(options.tls));
    Add({"certificates", [this](const ServerOptions&) { return tls_->Prepare(); }});
  }
  HIPPODROME_ASSIGN_OR_RETURN(http_, StartHttp(options.http, routes_));
  HIPPODROME_ASSIGN_OR_RETURN(grpc_,
                              GrpcServer::Start(options.grpc, handlers_, metrics_, access_, tls_));
  if (options.admin_address.empty()) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(admin_,
                              StartHttp(AdminOptions(options.admin_address), admin_routes_));
  return absl::OkStatus();
}

Server::~Server() = default;

std::vector<std::string> Server::Warnings() const {
  std::vector<std::string> warnings;
  if (tls_ != nullptr) warnings.push_back(tls_->Warning(std::chrono::system_clock::now()));
  for (const auto& [listener, address] : std::initializer_list<std::pair<std::string, std::string>>{
           {"HTTP", http_address()}, {"gRPC", grpc_address()}, {"admin", admin_address()}}) {
    if (!address.empty()) {
      warnings.push_back(ExposureWarning(listener, address, tls_ != nullptr, access_.has_keys()));
    }
  }
  std::erase(warnings, "");
  return warnings;
}

void Server::Wait(std::chrono::milliseconds time, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!done() && !grace_ended_.load() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPoll);
  }
}

int64_t Server::Drain(std::chrono::milliseconds delay, std::chrono::milliseconds grace) {
  handlers_.AnnounceStop();
  grpc_->SetServing(false);
  Wait(delay, [] { return false; });
  if (batches_ != nullptr) batches_->Stop();
  repository_.Stop();
  handlers_.Close();
  // A call that is refused is answered, which many balancers take for success: they would send
  // more, for here calls end soonest.
  grpc_->RefuseConnections();
  const auto idle = [this] { return handlers_.pending() == 0; };
  const auto saving = std::min(grace / 3, kMostSaving);
  Wait(grace - saving, idle);
  if (!grace_ended_.load()) handlers_.Migrate();
  Wait(saving, idle);
  const StateHandlers& states = handlers_.states();
  // Those on their way to a slow store are still kept, and their clients told.
  Wait(kFlush, [&states] { return states.migrating() == 0; });
  if (states.migrated() > 0) {
    Log(LogLine(LogLevel::kInfo, "migrated").Integer("requests", states.migrated()));
  }
  const int64_t cut = handlers_.pending() + states.lost();
  metrics_.CountCut(cut);
  handlers_.Abort();
  http_->Stop(kFlush);
  grpc_->Stop(kFlush);
  if (admin_ != nullptr) admin_->Stop(kFlush);
  return cut;
}

}  // namespace hippodrome
