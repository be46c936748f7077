#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "hippodrome/v1/encoding.grpc.pb.h"
#include "server/grpc/grpc_services.h"
#include "server/grpc/unary_reactor.h"
#include "server/guarded.h"
#include "server/handlers/encoding_handlers.h"
#include "server/metrics/metrics.h"
#include "server/serial_executor.h"

namespace hippodrome {
namespace {

// ---- A stream of calls
// ---------------------------------------------------------------------------

// A stream of calls, answered in order. Reads ahead, so that the requests of one stream run
// together; a client that does not take its answers blocks its own stream alone. The first failure
// ends the stream, behind the answers before it. Lives until gRPC is done with it.
template <typename Request, typename Response>
class StreamReactor : public grpc::ServerBidiReactor<Request, Response>,
                      public std::enable_shared_from_this<StreamReactor<Request, Response>> {
 public:
  using Handle = std::function<Answer<Response>(const Request& request, CallRecord& call)>;

  // `handle` begins the work of one request; `stream` is the record of all that is not about one.
  // Where the stream is not `admitted`, nothing is read. `executor` must outlive the stream.
  static StreamReactor* Start(grpc::CallbackServerContext& context,
                              std::unique_ptr<CallRecord> stream, const absl::Status& admitted,
                              Handle handle, SerialExecutor& executor) {
    std::shared_ptr<StreamReactor> reactor(
        new StreamReactor(context, std::move(stream), std::move(handle), executor));
    reactor->self_ = reactor;
    std::lock_guard lock(reactor->mutex_);
    if (!admitted.ok()) reactor->Conclude(admitted);
    reactor->Advance();
    return reactor.get();
  }

  void OnReadDone(bool ok) override {
    // Without the lock, for it takes a while. Nobody else touches request_ meanwhile.
    std::optional<Call> call;
    if (ok) call = Begin();
    std::lock_guard lock(mutex_);
    reading_ = false;
    if (call && !outcome_) {
      Add(*std::move(call));
    } else {
      closed_ = true;
    }
    Advance();
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) Conclude(cancel_reason_());
    Advance();
  }

  // Also called when the client's deadline has passed.
  void OnCancel() override {
    std::lock_guard lock(mutex_);
    Conclude(cancel_reason_());
    Advance();
  }

  void OnDone() override { self_.reset(); }

 private:
  // One request, a call of its own.
  struct Call {
    std::unique_ptr<CallRecord> record;
    Answer<Response> answer;
  };

  // Requests of one stream that are here at once.
  static constexpr size_t kMostCalls = 64;

  StreamReactor(grpc::CallbackServerContext& context, std::unique_ptr<CallRecord> stream,
                Handle handle, SerialExecutor& executor)
      : context_(context),
        cancel_reason_(context),
        stream_(std::move(stream)),
        handle_(std::move(handle)),
        executor_(executor) {}

  // Of the request that was read.
  Call Begin() {
    std::unique_ptr<CallRecord> record = stream_->Part();
    record->Received(static_cast<int64_t>(request_.ByteSizeLong()));
    Answer<Response> answer = handle_(request_, *record);
    record->set_model(ModelOf(answer));
    return {std::move(record), std::move(answer)};
  }

  // All below: mutex_ is held.

  void Read() {
    reading_ = true;
    this->StartRead(&request_);
  }

  void Add(Call call) {
    const bool failed = !call.answer.ok();
    calls_.push_back(std::move(call));
    closed_ = closed_ || failed;
    if (failed) return;
    (*calls_.back().answer)->OnReady([weak = this->weak_from_this(), &executor = executor_] {
      executor.Post([weak] {
        const auto reactor = weak.lock();
        if (reactor == nullptr) return;
        std::lock_guard lock(reactor->mutex_);
        reactor->Advance();
      });
    });
  }

  // Does whatever can be done now.
  void Advance() {
    if (!outcome_ && !writing_) {
      const absl::Status status = Guarded([this] { return AnswerFirst(); });
      if (!status.ok()) Conclude(status);
    }
    if (!outcome_ && closed_ && calls_.empty() && !writing_) Conclude(absl::OkStatus());
    if (outcome_ && !writing_ && !finished_) {
      finished_ = true;
      this->Finish(ToGrpc(*outcome_, context_));
    }
    if (!outcome_ && !closed_ && !reading_ && calls_.size() < kMostCalls) Read();
  }

  // Writes the oldest answer, if it is ready; returns the error with which the stream must end.
  absl::Status AnswerFirst() {
    if (calls_.empty()) return absl::OkStatus();
    Call& call = calls_.front();
    std::optional<absl::StatusOr<Response>> answer;
    if (call.answer.ok()) {
      answer = (*call.answer)->Take();
      if (!answer) return absl::OkStatus();
    } else {
      answer = call.answer.status();
    }
    if (!answer->ok()) return answer->status();
    response_ = **std::move(answer);
    call.record->Sent(static_cast<int64_t>(response_.ByteSizeLong()));
    call.record->Finish(absl::OkStatus());
    call.record->Release();
    calls_.pop_front();
    writing_ = true;
    this->StartWrite(&response_);
    return absl::OkStatus();
  }

  // Settles how the stream ends and gives up what is left.
  void Conclude(const absl::Status& status) {
    if (outcome_) return;
    outcome_ = status;
    if (status.ok() || !calls_.empty()) {
      stream_->Drop();
    } else {
      stream_->Finish(status);
    }
    for (Call& call : calls_) call.record->Finish(status);
    calls_.clear();
  }

  grpc::CallbackServerContext& context_;
  const CancelReason cancel_reason_;
  const std::unique_ptr<CallRecord> stream_;
  const Handle handle_;
  SerialExecutor& executor_;
  std::shared_ptr<StreamReactor> self_;  // until OnDone()
  Request request_;                      // that is being read

  std::mutex mutex_;        // guards all below
  std::deque<Call> calls_;  // oldest first
  Response response_;       // that is being written
  bool reading_ = false;
  bool writing_ = false;
  bool closed_ = false;                  // no more requests will be read
  bool finished_ = false;                // Finish() was called
  std::optional<absl::Status> outcome_;  // how the stream ends, once that is known
};

// ---- The service
// ---------------------------------------------------------------------------------

using grpc::CallbackServerContext;
using grpc::ServerBidiReactor;
using grpc::ServerUnaryReactor;

class EncodingService : public v1::Encoding::CallbackService {
 public:
  EncodingService(EncodingHandlers& handlers, Metrics& metrics, const AccessControl& access)
      : handlers_(handlers), metrics_(metrics), access_(access) {}

  ServerUnaryReactor* Classify(CallbackServerContext* context, const v1::ClassifyRequest* request,
                               v1::ClassifyResponse* response) override {
    return Unary(*context, "Classify", &EncodingHandlers::Classify, *request, response);
  }
  ServerUnaryReactor* TagTokens(CallbackServerContext* context, const v1::TagTokensRequest* request,
                                v1::TagTokensResponse* response) override {
    return Unary(*context, "TagTokens", &EncodingHandlers::TagTokens, *request, response);
  }
  ServerUnaryReactor* FillMask(CallbackServerContext* context, const v1::FillMaskRequest* request,
                               v1::FillMaskResponse* response) override {
    return Unary(*context, "FillMask", &EncodingHandlers::FillMask, *request, response);
  }
  ServerUnaryReactor* AnswerQuestion(CallbackServerContext* context,
                                     const v1::AnswerQuestionRequest* request,
                                     v1::AnswerQuestionResponse* response) override {
    return Unary(*context, "AnswerQuestion", &EncodingHandlers::AnswerQuestion, *request, response);
  }
  ServerUnaryReactor* Embed(CallbackServerContext* context, const v1::EmbedRequest* request,
                            v1::EmbedResponse* response) override {
    return Unary(*context, "Embed", &EncodingHandlers::Embed, *request, response);
  }

  ServerBidiReactor<v1::ClassifyRequest, v1::ClassifyResponse>* ClassifyStream(
      CallbackServerContext* context) override {
    return Stream(*context, "ClassifyStream", &EncodingHandlers::Classify);
  }
  ServerBidiReactor<v1::TagTokensRequest, v1::TagTokensResponse>* TagTokensStream(
      CallbackServerContext* context) override {
    return Stream(*context, "TagTokensStream", &EncodingHandlers::TagTokens);
  }
  ServerBidiReactor<v1::FillMaskRequest, v1::FillMaskResponse>* FillMaskStream(
      CallbackServerContext* context) override {
    return Stream(*context, "FillMaskStream", &EncodingHandlers::FillMask);
  }
  ServerBidiReactor<v1::AnswerQuestionRequest, v1::AnswerQuestionResponse>* AnswerQuestionStream(
      CallbackServerContext* context) override {
    return Stream(*context, "AnswerQuestionStream", &EncodingHandlers::AnswerQuestion);
  }
  ServerBidiReactor<v1::EmbedRequest, v1::EmbedResponse>* EmbedStream(
      CallbackServerContext* context) override {
    return Stream(*context, "EmbedStream", &EncodingHandlers::Embed);
  }

 private:
  // One of the handlers.
  template <typename Request, typename Response>
  using Handler = Answer<Response> (EncodingHandlers::*)(const Request& request,
                                                         const Caller& caller);

  template <typename Request, typename Response>
  ServerUnaryReactor* Unary(CallbackServerContext& context, const char* route,
                            Handler<Request, Response> handle, const Request& request,
                            Response* response) {
    auto call = BeginCall(context, metrics_, route, request);
    Answer<Response> answer = Admitted(access_, context, *call, [&](const Caller& caller) {
      return (handlers_.*handle)(request, caller);
    });
    return UnaryReactor<Response>::Start(context, std::move(call), std::move(answer), response,
                                         executor_);
  }

  // Each request of a stream is a call of its own, also to the limits of its key; the deadline is
  // that of the stream.
  template <typename Request, typename Response>
  ServerBidiReactor<Request, Response>* Stream(CallbackServerContext& context, const char* route,
                                               Handler<Request, Response> handle) {
    using Reactor = StreamReactor<Request, Response>;
    const auto begin = [this, &context, handle](const Request& request, CallRecord& call) {
      return Admitted(access_, context, call,
                      [&](const Caller& caller) { return (handlers_.*handle)(request, caller); });
    };
    const absl::Status admitted = access_.Check(AuthorizationOf(context), Access::kKey);
    return Reactor::Start(context, BeginCall(context, metrics_, route), admitted, begin, executor_);
  }

  EncodingHandlers& handlers_;
  Metrics& metrics_;
  const AccessControl& access_;
  SerialExecutor executor_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewEncodingService(EncodingHandlers& handlers, Metrics& metrics,
                                                  const AccessControl& access) {
  return std::make_unique<EncodingService>(handlers, metrics, access);
}

}  // namespace hippodrome
