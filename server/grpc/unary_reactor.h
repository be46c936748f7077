// A gRPC call that has one answer, which takes time. Includes gRPC: for this folder alone.
#ifndef HIPPODROME_SERVER_GRPC_UNARY_REACTOR_H_
#define HIPPODROME_SERVER_GRPC_UNARY_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/grpc/grpc_services.h"
#include "server/guarded.h"
#include "server/handlers/encoding_handlers.h"
#include "server/serial_executor.h"

namespace hippodrome {

// For the record of a call: the model that answers, or "" where the call was refused.
template <typename Pending>
std::string ModelOf(const absl::StatusOr<std::unique_ptr<Pending>>& answer) {
  return answer.ok() ? (*answer)->model() : "";
}

// A call that has one answer, which `Pending` gives by OnReady() and Take(). It is answered on the
// executor's thread. Lives until gRPC is done with it.
template <typename Response, typename Pending = PendingAnswer<Response>>
class UnaryReactor : public grpc::ServerUnaryReactor,
                     public std::enable_shared_from_this<UnaryReactor<Response, Pending>> {
 public:
  // Fills `response` when the answer is ready, or ends the call at once with its error. `executor`
  // must outlive the call.
  static UnaryReactor* Start(grpc::CallbackServerContext& context, std::unique_ptr<CallRecord> call,
                             absl::StatusOr<std::unique_ptr<Pending>> answer, Response* response,
                             SerialExecutor& executor) {
    call->set_model(ModelOf(answer));
    std::shared_ptr<UnaryReactor> reactor(new UnaryReactor(context, std::move(call), response));
    reactor->self_ = reactor;
    std::lock_guard lock(reactor->mutex_);
    if (answer.ok()) {
      reactor->Wait(*std::move(answer), executor);
    } else {
      reactor->End(answer.status());
    }
    return reactor.get();
  }

  // Also called when the client's deadline has passed.
  void OnCancel() override {
    std::unique_ptr<Pending> abandoned;
    std::lock_guard lock(mutex_);
    abandoned.swap(answer_);
    End(cancel_reason_());
  }

  void OnDone() override {
    {
      std::lock_guard lock(mutex_);
      answer_.reset();
      if (outcome_->ok()) call_->Sent(static_cast<int64_t>(response_->ByteSizeLong()));
      call_->Finish(*outcome_);
    }
    self_.reset();
  }

 private:
  UnaryReactor(grpc::CallbackServerContext& context, std::unique_ptr<CallRecord> call,
               Response* response)
      : context_(context), cancel_reason_(context), call_(std::move(call)), response_(response) {}

  // REQUIRES: mutex_ is held.
  void Wait(std::unique_ptr<Pending> answer, SerialExecutor& executor) {
    answer_ = std::move(answer);
    answer_->OnReady([weak = this->weak_from_this(), &executor] {
      executor.Post([weak] {
        if (const auto reactor = weak.lock()) reactor->Deliver();
      });
    });
  }

  void Deliver() {
    std::lock_guard lock(mutex_);
    if (outcome_ || answer_ == nullptr) return;
    bool ready = false;
    const absl::Status status = Guarded([&] {
      std::optional<absl::StatusOr<Response>> answer = answer_->Take();
      ready = answer.has_value();
      if (!ready) return absl::OkStatus();
      const absl::Status outcome = answer->status();
      if (outcome.ok()) *response_ = **std::move(answer);
      return outcome;
    });
    if (ready || !status.ok()) End(status);
  }

  // REQUIRES: mutex_ is held.
  void End(const absl::Status& status) {
    if (outcome_) return;
    outcome_ = status;
    call_->Release();
    Finish(ToGrpc(status, context_));
  }

  grpc::CallbackServerContext& context_;
  const CancelReason cancel_reason_;
  const std::unique_ptr<CallRecord> call_;
  Response* const response_;            // gRPC's, until OnDone()
  std::shared_ptr<UnaryReactor> self_;  // until OnDone()

  std::mutex mutex_;  // guards the next two
  std::unique_ptr<Pending> answer_;
  std::optional<absl::Status> outcome_;  // how the call ends, once that is known
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_UNARY_REACTOR_H_
