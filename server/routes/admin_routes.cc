#include "server/routes/admin_routes.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/guarded.h"
#include "server/http/http_replies.h"
#include "server/json/repository_json.h"
#include "server/routes/openapi.h"

namespace hippodrome {
namespace {

// How a load ends, between the thread that loads and the client that waits.
class LoadOutcome {
 public:
  void Set(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    status_ = status;
    if (wake_) wake_();
  }
  void OnUpdate(std::function<void()> wake) {
    std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
    if (status_ && wake_) wake_();
  }
  std::optional<absl::Status> status() const {
    std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<absl::Status> status_;
  std::function<void()> wake_;
};

class LoadWork : public HttpWork {
 public:
  explicit LoadWork(std::shared_ptr<LoadOutcome> outcome) : outcome_(std::move(outcome)) {}
  ~LoadWork() override { outcome_->OnUpdate(nullptr); }

  void OnUpdate(std::function<void()> wake) override { outcome_->OnUpdate(std::move(wake)); }
  bool Advance(HttpResponse& response) override {
    const std::optional<absl::Status> status = outcome_->status();
    if (!status) return false;
    if (!status->ok()) response = ErrorResponse(*status, ErrorShape::kKServe);
    return true;
  }

 private:
  const std::shared_ptr<LoadOutcome> outcome_;
};

}  // namespace

AdminRoutes::AdminRoutes(HttpRoutes& routes, ModelRepository& repository,
                         const AccessControl& access)
    : routes_(routes), repository_(repository), access_(access), router_([this] {
        const auto bind = [this](HttpReply (AdminRoutes::*handle)(const HttpRequest& request)) {
          return [this, handle](const HttpRequest& request) { return (this->*handle)(request); };
        };
        return std::vector<HttpRoute>{
            {"/health", "GET", bind(&AdminRoutes::PassOn), ErrorShape::kOpenAi, Access::kOpen},
            {"/ready", "GET", bind(&AdminRoutes::PassOn), ErrorShape::kOpenAi, Access::kOpen},
            {"/metrics", "GET", bind(&AdminRoutes::PassOn)},
            {"/version", "GET", bind(&AdminRoutes::PassOn)},
            {"/openapi.json", "GET", bind(&AdminRoutes::DescribeRoutes)},
            {"/v2/repository/index", "POST", bind(&AdminRoutes::Index), ErrorShape::kKServe},
            {"/v2/repository/models/{model}/load", "POST", bind(&AdminRoutes::Load),
             ErrorShape::kKServe},
            {"/v2/repository/models/{model}/unload", "POST", bind(&AdminRoutes::Unload),
             ErrorShape::kKServe},
        };
      }()) {}

void AdminRoutes::Route(HttpRequest& head) const {
  if (!head.routed) router_.Open(head, access_, Access::kAdminKey);
}

HttpReply AdminRoutes::Handle(HttpRequest request) {
  Route(request);
  HttpReply reply;
  if (request.answer) {
    reply.response = *std::move(request.answer);
  } else {
    absl::StatusOr<HttpReply> made =
        Guarded([&]() -> absl::StatusOr<HttpReply> { return request.route->handle(request); });
    reply = made.ok() ? *std::move(made) : Failed(made.status(), request.route->errors);
  }
  HandOver(request, reply);
  return reply;
}

HttpReply AdminRoutes::PassOn(const HttpRequest& request) { return routes_.PassOn(request); }

HttpReply AdminRoutes::DescribeRoutes(const HttpRequest&) {
  return Ok(OpenApiBody(router_.routes()));
}

HttpReply AdminRoutes::Index(const HttpRequest& request) {
  const absl::StatusOr<bool> only_ready = ParseRepositoryIndex(request.body);
  if (!only_ready.ok()) return Failed(only_ready.status(), ErrorShape::kKServe);
  return Ok(RepositoryIndexBody(repository_.Index(), *only_ready));
}

HttpReply AdminRoutes::Load(const HttpRequest& request) {
  const absl::StatusOr<ModelChange> change = ParseModelLoad(request.body);
  if (!change.ok()) return Failed(change.status(), ErrorShape::kKServe);
  const auto outcome = std::make_shared<LoadOutcome>();
  repository_.Load({request.parameters.at("model"), change->directory}, change->grace,
                   [outcome](const absl::Status& status) { outcome->Set(status); });
  HttpReply reply;
  reply.work = std::make_unique<LoadWork>(outcome);
  return reply;
}

HttpReply AdminRoutes::Unload(const HttpRequest& request) {
  const absl::StatusOr<ModelChange> change = ParseModelUnload(request.body);
  if (!change.ok()) return Failed(change.status(), ErrorShape::kKServe);
  const absl::Status status = repository_.Unload(request.parameters.at("model"), change->grace);
  return status.ok() ? Ok("") : Failed(status, ErrorShape::kKServe);
}

}  // namespace hippodrome
