#include "server/grpc/health_service.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/log/log.h"

namespace hippodrome {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::health::v1::HealthListRequest;
using grpc::health::v1::HealthListResponse;

namespace {

// Between looks at what is ready.
constexpr std::chrono::milliseconds kFollow{200};

}  // namespace

// One call of Watch. Shows the latest status, also before it ends: those that a slow client missed
// are not sent. Lives until gRPC is done with it.
class HealthWatch : public grpc::ServerWriteReactor<HealthCheckResponse>,
                    public std::enable_shared_from_this<HealthWatch> {
 public:
  static std::shared_ptr<HealthWatch> New() {
    auto watch = std::make_shared<HealthWatch>();
    watch->self_ = watch;
    return watch;
  }

  void Show(HealthCheckResponse::ServingStatus status) {
    std::lock_guard lock(mutex_);
    latest_ = status;
    Advance();
  }

  void End(const grpc::Status& status) {
    std::lock_guard lock(mutex_);
    if (!outcome_) outcome_ = status;
    Advance();
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok && !outcome_) outcome_ = grpc::Status::CANCELLED;
    Advance();
  }

  void OnCancel() override { End(grpc::Status::CANCELLED); }

  void OnDone() override { self_.reset(); }

 private:
  // REQUIRES: mutex_ is held.
  void Advance() {
    if (writing_ || finished_) return;
    // Before the end, which mostly comes with a change; to a client that is gone it is not written.
    if (latest_ != sent_) {
      sent_ = latest_;
      response_.set_status(*latest_);
      writing_ = true;
      StartWrite(&response_);
    } else if (outcome_) {
      finished_ = true;
      Finish(*outcome_);
    }
  }

  std::shared_ptr<HealthWatch> self_;  // until OnDone()

  std::mutex mutex_;  // guards all below
  std::optional<HealthCheckResponse::ServingStatus> latest_, sent_;
  HealthCheckResponse response_;  // that is being written
  bool writing_ = false;
  bool finished_ = false;
  std::optional<grpc::Status> outcome_;  // how the call ends, once that is known
};

HealthService::HealthService(std::vector<std::string> services, std::function<bool()> ready)
    : services_(std::move(services)), ready_(std::move(ready)), thread_([this] { Follow(); }) {}

HealthService::~HealthService() { Stop(); }

void HealthService::SetServing(bool serving) {
  std::lock_guard lock(mutex_);
  serving_ = serving;
  Tell();
}

void HealthService::Tell() {
  const auto status = Status();
  const bool serves = status == HealthCheckResponse::SERVING;
  if (std::exchange(served_, serves) != serves) {
    Log(LogLine(serves ? LogLevel::kInfo : LogLevel::kWarning, serves ? "ready" : "not_ready"));
  }
  for (const auto& watch : watches_.All()) watch->Show(status);
}

void HealthService::Follow() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kFollow, [this] { return stopping_; })) Tell();
}

void HealthService::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  const grpc::Status stopping(grpc::StatusCode::UNAVAILABLE, "the server is stopping");
  for (const auto& watch : watches_.Close()) watch->End(stopping);
  for (const auto& watch : strays_.Close()) watch->End(stopping);
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  response->set_status(Now());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(
      Knows(request->service())
          ? grpc::Status::OK
          : grpc::Status(grpc::StatusCode::NOT_FOUND, "no service '" + request->service() + "'"));
  return reactor;
}

grpc::ServerUnaryReactor* HealthService::List(grpc::CallbackServerContext* context,
                                              const HealthListRequest*,
                                              HealthListResponse* response) {
  auto& statuses = *response->mutable_statuses();
  statuses[""].set_status(Now());
  for (const std::string& service : services_) statuses[service].set_status(Now());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext*, const HealthCheckRequest* request) {
  const std::shared_ptr<HealthWatch> watch = HealthWatch::New();
  const bool known = Knows(request->service());
  // Among the others first, so that it misses no change.
  std::unique_lock lock(mutex_);
  const bool open = (known ? watches_ : strays_).Add(watch);
  watch->Show(known ? Status() : HealthCheckResponse::SERVICE_UNKNOWN);
  lock.unlock();
  if (!open) watch->End({grpc::StatusCode::UNAVAILABLE, "the server is stopping"});
  return watch.get();
}

bool HealthService::Knows(const std::string& service) const {
  return service.empty() ||
         std::find(services_.begin(), services_.end(), service) != services_.end();
}

HealthCheckResponse::ServingStatus HealthService::Now() {
  std::lock_guard lock(mutex_);
  return Status();
}

HealthCheckResponse::ServingStatus HealthService::Status() const {
  return serving_ && ready_() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

}  // namespace hippodrome
