#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "hippodrome/v1/generation.grpc.pb.h"
#include "server/batching/generation_batcher.h"
#include "server/grpc/grpc_services.h"
#include "server/grpc/unary_reactor.h"
#include "server/guarded.h"
#include "server/handlers/handlers.h"
#include "server/metrics/metrics.h"
#include "server/serial_executor.h"

namespace hippodrome {
namespace {

// ---- One call of Generate
// ------------------------------------------------------------------------

// Writes updates one at a time, so a slow client blocks its own call alone. Lives until gRPC is
// done with it.
class GenerateReactor : public grpc::ServerWriteReactor<v1::GenerateResponse>,
                        public std::enable_shared_from_this<GenerateReactor> {
 public:
  using Begin = std::function<absl::StatusOr<std::unique_ptr<Generation>>()>;

  // Streams `generation`, or ends the call at once with its error. `executor` writes what the loop
  // thread announces. `executor` must outlive the call.
  static GenerateReactor* Start(grpc::CallbackServerContext& context,
                                std::unique_ptr<CallRecord> call,
                                absl::StatusOr<std::unique_ptr<Generation>> generation,
                                SerialExecutor& executor);
  // The same with what begin() returns, which takes a while: it runs on the thread of `slow`, which
  // must outlive the call, and perhaps after the call's end.
  static GenerateReactor* Start(grpc::CallbackServerContext& context,
                                std::unique_ptr<CallRecord> call, Begin begin,
                                SerialExecutor& executor, SerialExecutor& slow);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  GenerateReactor(grpc::CallbackServerContext& context, std::unique_ptr<CallRecord> call)
      : context_(context), cancel_reason_(context), call_(std::move(call)) {}

  // REQUIRES: mutex_ is held.
  void Run(absl::StatusOr<std::unique_ptr<Generation>> generation, SerialExecutor& executor);
  // Starts the next write, if none is under way and there is something to write.
  void WriteIfReady();
  // The error with which the call must end.
  absl::Status WriteNext();
  void Write(const StreamUpdate& update);
  // Ends the call once no write is under way. REQUIRES: mutex_ is held.
  void End(const absl::Status& status);

  grpc::CallbackServerContext& context_;
  const CancelReason cancel_reason_;
  const std::unique_ptr<CallRecord> call_;  // guarded by mutex_ once it has begun
  std::shared_ptr<GenerateReactor> self_;   // until OnDone()

  std::mutex mutex_;  // guards all below
  std::unique_ptr<Generation> generation_;
  v1::GenerateResponse response_;
  int64_t tokens_ = 0;  // that were written
  bool writing_ = false;
  bool finished_ = false;                // Finish() was called
  std::optional<absl::Status> outcome_;  // how the call ends, once that is known
};

v1::FinishReason ToProto(StreamFinish finish) {
  switch (finish) {
    case StreamFinish::kStopString:
    case StreamFinish::kEndOfText:
      return v1::FINISH_REASON_STOP;
    case StreamFinish::kLength:
      return v1::FINISH_REASON_LENGTH;
    case StreamFinish::kMigrated:
      return v1::FINISH_REASON_MIGRATED;
    default:
      return v1::FINISH_REASON_UNSPECIFIED;
  }
}

void ToProto(const TokenScores& scores, v1::TokenScores& out) {
  out.set_log_probability(scores.log_probability);
  for (const LikelyToken& top : scores.likeliest) {
    v1::TokenLogProbability& entry = *out.add_top();
    entry.set_token(top.token);
    entry.set_log_probability(top.log_probability);
  }
}

GenerateReactor* GenerateReactor::Start(grpc::CallbackServerContext& context,
                                        std::unique_ptr<CallRecord> call,
                                        absl::StatusOr<std::unique_ptr<Generation>> generation,
                                        SerialExecutor& executor) {
  std::shared_ptr<GenerateReactor> reactor(new GenerateReactor(context, std::move(call)));
  reactor->self_ = reactor;
  std::lock_guard lock(reactor->mutex_);
  reactor->Run(std::move(generation), executor);
  return reactor.get();
}

GenerateReactor* GenerateReactor::Start(grpc::CallbackServerContext& context,
                                        std::unique_ptr<CallRecord> call, Begin begin,
                                        SerialExecutor& executor, SerialExecutor& slow) {
  std::shared_ptr<GenerateReactor> reactor(new GenerateReactor(context, std::move(call)));
  reactor->self_ = reactor;
  slow.Post([weak = std::weak_ptr(reactor), begin = std::move(begin), &executor] {
    const auto held = weak.lock();
    if (held == nullptr) return;
    auto generation = Guarded(begin);
    std::lock_guard lock(held->mutex_);
    if (!held->outcome_) held->Run(std::move(generation), executor);
  });
  return reactor.get();
}

void GenerateReactor::Run(absl::StatusOr<std::unique_ptr<Generation>> generation,
                          SerialExecutor& executor) {
  if (!generation.ok()) {
    End(generation.status());
    return;
  }
  generation_ = *std::move(generation);
  generation_->OnUpdate([weak = weak_from_this(), &executor] {
    executor.Post([weak] {
      if (const auto reactor = weak.lock()) reactor->WriteIfReady();
    });
  });
}

void GenerateReactor::WriteIfReady() {
  std::lock_guard lock(mutex_);
  if (writing_ || outcome_ || generation_ == nullptr) return;
  const absl::Status status = Guarded([this] { return WriteNext(); });
  if (!status.ok()) End(status);
}

absl::Status GenerateReactor::WriteNext() {
  const std::optional<StreamUpdate> update = generation_->Take();
  if (!update) return absl::OkStatus();
  if (update->status.ok()) Write(*update);
  return update->status;
}

void GenerateReactor::Write(const StreamUpdate& update) {
  response_.Clear();
  response_.set_text(update.text);
  response_.mutable_token_ids()->Add(update.token_ids.begin(), update.token_ids.end());
  response_.set_finish_reason(ToProto(update.finish));
  for (const TokenScores& scores : update.scores) ToProto(scores, *response_.add_scores());
  for (const TokenScores& scores : update.prompt_scores) {
    ToProto(scores, *response_.add_prompt_scores());
  }
  writing_ = true;
  tokens_ += std::ssize(update.token_ids);
  call_->set_tokens({update.prompt_tokens, tokens_});
  if (!update.last()) {
    call_->Sent(static_cast<int64_t>(response_.ByteSizeLong()));
    StartWrite(&response_);
    return;
  }
  response_.mutable_usage()->set_prompt_tokens(update.prompt_tokens);
  response_.mutable_usage()->set_completion_tokens(update.completion_tokens);
  response_.mutable_usage()->mutable_prompt_tokens_details()->set_cached_tokens(
      update.cached_tokens);
  if (update.state != nullptr) *response_.mutable_state() = *update.state;
  call_->Sent(static_cast<int64_t>(response_.ByteSizeLong()));
  outcome_ = absl::OkStatus();
  finished_ = true;
  call_->Release();
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
}

void GenerateReactor::End(const absl::Status& status) {
  if (!outcome_) outcome_ = status;
  if (writing_ || finished_) return;
  finished_ = true;
  call_->Release();
  Finish(ToGrpc(*outcome_, context_));
}

void GenerateReactor::OnWriteDone(bool ok) {
  {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok || outcome_) {
      End(cancel_reason_());
      return;
    }
  }
  WriteIfReady();
}

// Also called when the client's deadline has passed.
void GenerateReactor::OnCancel() {
  std::unique_ptr<Generation> abandoned;
  std::lock_guard lock(mutex_);
  abandoned.swap(generation_);
  End(cancel_reason_());
}

void GenerateReactor::OnDone() {
  {
    std::lock_guard lock(mutex_);
    generation_.reset();
    call_->Finish(*outcome_);
  }
  self_.reset();
}

// ---- The service
// ---------------------------------------------------------------------------------

class GenerationService : public v1::Generation::CallbackService {
 public:
  GenerationService(Handlers& handlers, Metrics& metrics, const AccessControl& access)
      : handlers_(handlers), metrics_(metrics), access_(access) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override {
    auto call = BeginCall(*context, metrics_, "Generate", *request);
    call->set_model(handlers_.ModelName(request->model()));
    call->BeginStream();
    if (!request->state().empty()) return GoOn(*context, std::move(call), *request);
    auto generation = Admitted(access_, *context, *call, [&](Caller caller) {
      caller.may_migrate = true;
      return handlers_.Generate(*request, caller);
    });
    return GenerateReactor::Start(*context, std::move(call), std::move(generation), executor_);
  }

  grpc::ServerUnaryReactor* Score(grpc::CallbackServerContext* context,
                                  const v1::ScoreRequest* request,
                                  v1::ScoreResponse* response) override {
    auto call = BeginCall(*context, metrics_, "Score", *request);
    auto pending = Admitted(access_, *context, *call, [&](const Caller& caller) {
      return handlers_.Score(*request, caller);
    });
    return UnaryReactor<v1::ScoreResponse, PendingScore>::Start(
        *context, std::move(call), std::move(pending), response, executor_);
  }

  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* request,
                                     v1::TokenizeResponse* response) override {
    const auto call = BeginCall(*context, metrics_, "Tokenize", *request);
    return Reply<v1::TokenizeResponse>(
        context, access_, *call, [&] { return handlers_.Tokenize(*request); }, response);
  }

  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const v1::DetokenizeRequest* request,
                                       v1::DetokenizeResponse* response) override {
    const auto call = BeginCall(*context, metrics_, "Detokenize", *request);
    return Reply<v1::DetokenizeResponse>(
        context, access_, *call, [&] { return handlers_.Detokenize(*request); }, response);
  }

 private:
  // From a state.
  GenerateReactor* GoOn(grpc::CallbackServerContext& context, std::unique_ptr<CallRecord> call,
                        const v1::GenerateRequest& request) {
    auto caller =
        Admitted(access_, context, *call,
                 [](const Caller& admitted) -> absl::StatusOr<Caller> { return admitted; });
    if (!caller.ok()) {
      return GenerateReactor::Start(context, std::move(call), caller.status(), executor_);
    }
    caller->may_migrate = true;
    // gRPC's own ends with the call.
    auto begin = [this, caller = *caller, copy = std::make_shared<v1::GenerateRequest>(request)] {
      return handlers_.Generate(*copy, caller);
    };
    return GenerateReactor::Start(context, std::move(call), begin, executor_, state_executor_);
  }

  Handlers& handlers_;
  Metrics& metrics_;
  const AccessControl& access_;
  SerialExecutor executor_;
  SerialExecutor state_executor_;  // reads states, which takes a while
};

}  // namespace

std::unique_ptr<grpc::Service> NewGenerationService(Handlers& handlers, Metrics& metrics,
                                                    const AccessControl& access) {
  return std::make_unique<GenerationService>(handlers, metrics, access);
}

}  // namespace hippodrome
