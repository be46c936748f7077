// The work behind a call of an encoder.
#ifndef HIPPODROME_SERVER_HTTP_ANSWER_WORK_H_
#define HIPPODROME_SERVER_HTTP_ANSWER_WORK_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/guarded.h"
#include "server/handlers/encoding_handlers.h"
#include "server/http/http_replies.h"
#include "server/http/http_types.h"
#include "server/metrics/metrics.h"
#include "server/status_map.h"

namespace hippodrome {

// Waits for an answer and makes its body.
template <typename Response>
class AnswerWork : public HttpWork {
 public:
  // Makes the response of the answer.
  using Complete = std::function<void(const Response& answer, HttpResponse& response)>;

  // `route` and `metrics` must outlive the work.
  AnswerWork(std::unique_ptr<PendingAnswer<Response>> answer, Complete complete,
             const HttpRoute& route, Metrics& metrics)
      : model_(answer->model()),
        answer_(std::move(answer)),
        complete_(std::move(complete)),
        route_(route),
        metrics_(metrics) {}

  ~AnswerWork() override {
    if (!counted_) Count(absl::CancelledError());
  }

  void OnUpdate(std::function<void()> wake) override { answer_->OnReady(std::move(wake)); }

  bool Advance(HttpResponse& response) override {
    const absl::StatusOr<bool> done = Guarded([&] { return Progress(response); });
    if (done.ok() && !*done) return false;
    if (!done.ok()) response = ErrorResponse(done.status(), route_.errors);
    Count(done.status());
    return true;
  }

 private:
  // Whether the response is complete, or the error that it becomes.
  absl::StatusOr<bool> Progress(HttpResponse& response) {
    const std::optional<absl::StatusOr<Response>> answer = answer_->Take();
    if (!answer) return false;
    if (!answer->ok()) return answer->status();
    complete_(**answer, response);
    return true;
  }

  void Count(const absl::Status& status) {
    counted_ = true;
    if (!status.ok()) metrics_.CountFailure(status);
    metrics_.CountRequest(Api::kHttp, route_.pattern, model_, std::to_string(HttpStatus(status)));
  }

  const std::string model_;
  std::unique_ptr<PendingAnswer<Response>> answer_;
  const Complete complete_;
  const HttpRoute& route_;
  Metrics& metrics_;
  bool counted_ = false;
};

// The reply to `request` that complete(answer, response) makes of `answer`.
template <typename Response, typename Complete>
HttpReply AnswerReply(const HttpRequest& request, Answer<Response> answer, Complete complete,
                      Metrics& metrics) {
  if (!answer.ok()) return Failed(answer.status(), metrics, request.route->errors);
  HttpReply reply;
  reply.work = std::make_unique<AnswerWork<Response>>(*std::move(answer), std::move(complete),
                                                      *request.route, metrics);
  return reply;
}

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_ANSWER_WORK_H_
