#include "server/routes/state_routes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/http/http_replies.h"
#include "server/json/state_json.h"

namespace hippodrome {
namespace {

constexpr size_t kFilePiece = 256 << 10;

// Writes a file piece by piece, so that a slow reader costs no copy of it.
class FileWork : public HttpWork {
 public:
  explicit FileWork(std::shared_ptr<const std::string> file) : file_(std::move(file)) {}

  void OnUpdate(std::function<void()> wake) override {
    wake_ = std::move(wake);
    wake_();
  }

  bool Advance(HttpResponse& response) override {
    const size_t bytes = std::min(kFilePiece, file_->size() - sent_);
    response.body.append(*file_, sent_, bytes);
    sent_ += bytes;
    if (sent_ == file_->size()) return true;
    wake_();
    return false;
  }

 private:
  const std::shared_ptr<const std::string> file_;
  size_t sent_ = 0;
  std::function<void()> wake_;
};

template <typename Make>
HttpReply Later(const Make& make) {
  HttpReply reply;
  reply.later = make;
  return reply;
}

absl::StatusOr<std::optional<int64_t>> TtlOf(const HttpRequest& request) {
  constexpr std::string_view kName = "state_ttl=";
  std::optional<int64_t> ttl;
  if (request.query.empty()) return ttl;
  const std::string_view query = request.query;
  int64_t seconds = 0;
  if (!query.starts_with(kName) ||
      !absl::SimpleAtoi(request.query.substr(kName.size()), &seconds)) {
    return FieldError("state_ttl",
                      "expected ?state_ttl=SECONDS, found ?" + request.query.substr(0, 64));
  }
  ttl = seconds;
  return ttl;
}

}  // namespace

HttpReply StateRoutes::List(const HttpRequest& request) {
  return Later([this, &request] {
    const absl::StatusOr<v1::ListStatesResponse> states = handlers_.List(request.caller());
    return states.ok() ? Ok(StatesBody(*states)) : Failed(states.status());
  });
}

HttpReply StateRoutes::Get(const HttpRequest& request) {
  const bool head = request.method == "HEAD";
  return Later([this, head, &request] {
    absl::StatusOr<std::shared_ptr<const std::string>> file =
        handlers_.Get(request.parameters.at("handle"), request.caller());
    if (!file.ok()) return Failed(file.status());
    HttpReply reply;
    reply.response.content_type = "application/octet-stream";
    if (head) return reply;
    reply.streamed = true;
    reply.work = std::make_unique<FileWork>(*std::move(file));
    return reply;
  });
}

HttpReply StateRoutes::Put(const HttpRequest& request) {
  const absl::StatusOr<std::optional<int64_t>> ttl = TtlOf(request);
  if (!ttl.ok()) return Failed(ttl.status());
  if (const absl::Status status = handlers_.CheckImport(); !status.ok()) return Failed(status);
  return Later([this, ttl = *ttl, &request] {
    const absl::StatusOr<v1::State> state =
        handlers_.Put(request.parameters.at("handle"), request.body, ttl, request.caller());
    return state.ok() ? Ok(StateBody(*state)) : Failed(state.status());
  });
}

HttpReply StateRoutes::Delete(const HttpRequest& request) {
  return Later([this, &request] {
    const std::string& handle = request.parameters.at("handle");
    const absl::Status status = handlers_.Delete(handle, request.caller());
    return status.ok() ? Ok(DeletedBody(handle)) : Failed(status);
  });
}

HttpReply StateRoutes::Fork(const HttpRequest& request) {
  absl::StatusOr<v1::ForkStateRequest> fork = ParseFork(request.body);
  if (!fork.ok()) return Failed(fork.status());
  fork->set_handle(request.parameters.at("handle"));
  return Later([this, fork = *std::move(fork), &request] {
    const absl::StatusOr<v1::ForkStateResponse> forks = handlers_.Fork(fork, request.caller());
    return forks.ok() ? Ok(ForkBody(*forks)) : Failed(forks.status());
  });
}

}  // namespace hippodrome
