#include "server/routes/generation_work.h"

#include <iterator>
#include <optional>
#include <utility>

#include "server/guarded.h"
#include "server/http/http_replies.h"
#include "server/json/json_responses.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

// That wait for a response that is not streamed before it takes them, within what may be unread.
constexpr int64_t kTokensPerWake = 64;

class GenerationWork : public HttpWork {
 public:
  GenerationWork(const HttpRoute& route, std::vector<std::unique_ptr<Generation>> generations,
                 std::unique_ptr<GenerationFormat> format, bool streamed)
      : route_(route),
        generations_(std::move(generations)),
        unfinished_(generations_.size()),
        format_(std::move(format)),
        streamed_(streamed) {}

  void OnUpdate(std::function<void()> wake) override {
    for (const auto& generation : generations_) {
      if (generation != nullptr) generation->OnUpdate(wake, streamed_ ? 1 : kTokensPerWake);
    }
  }

  bool Advance(HttpResponse& response) override {
    const absl::StatusOr<bool> done = Guarded([&] { return Progress(response); });
    if (done.ok() && !*done) return false;
    if (!done.ok()) Fail(done.status(), response);
    return true;
  }

 private:
  // Whether the response is complete, or the error that it becomes.
  absl::StatusOr<bool> Progress(HttpResponse& response) {
    for (size_t i = 0; i < generations_.size(); ++i) {
      while (generations_[i] != nullptr) {
        const std::optional<StreamUpdate> update = generations_[i]->Take();
        if (!update) break;
        if (!update->status.ok()) return update->status;
        format_->Add(i, *update, response);
        response.tokens.generated += std::ssize(update->token_ids);
        if (!update->last()) continue;
        response.tokens.prompt = update->prompt_tokens;
        generations_[i].reset();
        --unfinished_;
      }
    }
    if (unfinished_ > 0) return false;
    if (!streamed_) format_->Complete(response);
    return true;
  }

  // A stream that has begun can only end with an error event.
  void Fail(const absl::Status& status, HttpResponse& response) {
    generations_.clear();
    if (streamed_) {
      response.body += ServerSentEvent(ErrorBody(status, route_.errors));
      response.status = HttpStatus(status);
    } else {
      response = ErrorResponse(status, route_.errors);
    }
  }

  const HttpRoute& route_;
  std::vector<std::unique_ptr<Generation>> generations_;  // null once finished
  size_t unfinished_;
  const std::unique_ptr<GenerationFormat> format_;
  const bool streamed_;
};

}  // namespace

std::string ServerSentEvent(const std::string& data) { return "data: " + data + "\n\n"; }

HttpReply GenerationReply(const HttpRequest& request,
                          std::vector<std::unique_ptr<Generation>> generations,
                          std::unique_ptr<GenerationFormat> format, bool streamed,
                          std::string model) {
  HttpReply reply;
  reply.model = std::move(model);
  reply.streamed = streamed;
  if (streamed) {
    reply.response.content_type = "text/event-stream";
    reply.response.headers.emplace_back("Cache-Control", "no-cache");
    reply.filler = ": waiting\n\n";
  }
  reply.work = std::make_unique<GenerationWork>(*request.route, std::move(generations),
                                                std::move(format), streamed);
  return reply;
}

}  // namespace hippodrome
