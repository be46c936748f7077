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

namespace hippodrome {

// Waits for an answer and makes its body.
template <typename Response>
class AnswerWork : public HttpWork {
 public:
  // Makes the response of the answer.
  using Complete = std::function<void(const Response& answer, HttpResponse& response)>;

  // `route` must outlive the work.
  AnswerWork(std::unique_ptr<PendingAnswer<Response>> answer, Complete complete,
             const HttpRoute& route)
      : answer_(std::move(answer)), complete_(std::move(complete)), route_(route) {}

  void OnUpdate(std::function<void()> wake) override { answer_->OnReady(std::move(wake)); }

  bool Advance(HttpResponse& response) override {
    const absl::StatusOr<bool> done = Guarded([&] { return Progress(response); });
    if (done.ok() && !*done) return false;
    if (!done.ok()) response = ErrorResponse(done.status(), route_.errors);
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

  std::unique_ptr<PendingAnswer<Response>> answer_;
  const Complete complete_;
  const HttpRoute& route_;
};

// The reply to `request` that complete(answer, response) makes of `answer`.
template <typename Response, typename Complete>
HttpReply AnswerReply(const HttpRequest& request, Answer<Response> answer, Complete complete) {
  if (!answer.ok()) return Failed(answer.status(), request.route->errors);
  HttpReply reply;
  reply.model = (*answer)->model();
  reply.work = std::make_unique<AnswerWork<Response>>(*std::move(answer), std::move(complete),
                                                      *request.route);
  return reply;
}

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_ANSWER_WORK_H_
