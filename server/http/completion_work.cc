#include "server/http/completion_work.h"

#include <utility>

#include "engine/base/status.h"
#include "server/guarded.h"
#include "server/http/http_replies.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

constexpr char kRoute[] = "/v1/completions";

std::string Event(const std::string& data) { return "data: " + data + "\n\n"; }

}  // namespace

CompletionWork::CompletionWork(std::vector<std::unique_ptr<Generation>> generations,
                               CompletionHead head, Format format, Metrics& metrics)
    : generations_(std::move(generations)),
      choices_(generations_.size()),
      head_(std::move(head)),
      format_(format),
      metrics_(metrics),
      unfinished_(generations_.size()) {}

CompletionWork::~CompletionWork() {
  if (counted_) return;
  metrics_.CountFailure(absl::CancelledError());
  metrics_.CountRequest(Api::kHttp, kRoute, head_.model, "499");
}

void CompletionWork::OnUpdate(std::function<void()> wake) {
  for (const auto& generation : generations_) generation->OnUpdate(wake);
}

bool CompletionWork::Advance(HttpResponse& response) {
  const absl::StatusOr<bool> done = Guarded([&] { return Progress(response); });
  if (!done.ok()) Fail(done.status(), response);
  return done.value_or(true);
}

absl::StatusOr<bool> CompletionWork::Progress(HttpResponse& response) {
  for (size_t i = 0; i < generations_.size(); ++i) {
    while (generations_[i] != nullptr && Collect(i, response)) {
      HIPPODROME_RETURN_IF_ERROR(failure_);
    }
  }
  if (unfinished_ > 0) return false;
  Complete(response);
  return true;
}

bool CompletionWork::Collect(size_t i, HttpResponse& response) {
  std::optional<StreamUpdate> update = generations_[i]->Take();
  if (!update) return false;
  if (update->last()) {
    generations_[i].reset();
    --unfinished_;
  }
  failure_ = update->status;
  if (!failure_.ok()) return true;
  if (format_.stream) {
    response.body += Event(CompletionEvent(head_, static_cast<int64_t>(i), *update));
    update->text.clear();
    update->token_ids.clear();
  }
  StreamUpdate& choice = choices_[i];
  choice.text += update->text;
  choice.token_ids.insert(choice.token_ids.end(), update->token_ids.begin(),
                          update->token_ids.end());
  choice.finish = update->finish;
  choice.prompt_tokens = update->prompt_tokens;
  choice.completion_tokens = update->completion_tokens;
  return true;
}

// A stream that has begun can only end with an error event.
void CompletionWork::Fail(const absl::Status& status, HttpResponse& response) {
  generations_.clear();
  if (format_.stream) {
    response.body += Event(ErrorBody(status));
  } else {
    response = ErrorResponse(status);
  }
  counted_ = true;
  metrics_.CountFailure(status);
  metrics_.CountRequest(Api::kHttp, kRoute, head_.model, std::to_string(HttpStatus(status)));
}

void CompletionWork::Complete(HttpResponse& response) {
  if (format_.stream) {
    if (format_.include_usage) response.body += Event(UsageEvent(head_, choices_));
    response.body += Event("[DONE]");
  } else {
    response.body = CompletionBody(head_, choices_);
  }
  counted_ = true;
  metrics_.CountRequest(Api::kHttp, kRoute, head_.model, "200");
}

}  // namespace hippodrome
