#include "server/grpc/generate_reactor.h"

#include <utility>

#include "engine/base/status.h"
#include "server/guarded.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

v1::FinishReason ToProto(StreamFinish finish) {
  switch (finish) {
    case StreamFinish::kStop:
      return v1::FINISH_REASON_STOP;
    case StreamFinish::kLength:
      return v1::FINISH_REASON_LENGTH;
    default:
      return v1::FINISH_REASON_UNSPECIFIED;
  }
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(GrpcCode(status)), Message(status)};
}

GenerateReactor* GenerateReactor::Start(absl::StatusOr<std::unique_ptr<Generation>> generation,
                                        std::string model, Metrics& metrics, Courier& courier) {
  std::shared_ptr<GenerateReactor> reactor(new GenerateReactor(std::move(model), metrics));
  reactor->self_ = reactor;
  if (generation.ok()) {
    reactor->Run(*std::move(generation), courier);
  } else {
    std::lock_guard lock(reactor->mutex_);
    reactor->End(generation.status());
  }
  return reactor.get();
}

void GenerateReactor::Run(std::unique_ptr<Generation> generation, Courier& courier) {
  std::lock_guard lock(mutex_);
  generation_ = std::move(generation);
  generation_->OnUpdate([weak = weak_from_this(), &courier] {
    courier.Post([weak] {
      if (const auto reactor = weak.lock()) reactor->Pump();
    });
  });
}

void GenerateReactor::Pump() {
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
  writing_ = true;
  if (!update.last()) {
    StartWrite(&response_);
    return;
  }
  response_.mutable_usage()->set_prompt_tokens(update.prompt_tokens);
  response_.mutable_usage()->set_completion_tokens(update.completion_tokens);
  outcome_ = absl::OkStatus();
  finished_ = true;
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
}

void GenerateReactor::End(const absl::Status& status) {
  if (!outcome_) outcome_ = status;
  if (writing_ || finished_) return;
  finished_ = true;
  Finish(ToGrpc(*outcome_));
}

void GenerateReactor::OnWriteDone(bool ok) {
  {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok || outcome_) {
      End(absl::CancelledError());
      return;
    }
  }
  Pump();
}

// Also called when the client's deadline has passed.
void GenerateReactor::OnCancel() {
  std::unique_ptr<Generation> abandoned;
  std::lock_guard lock(mutex_);
  abandoned.swap(generation_);
  End(absl::CancelledError());
}

void GenerateReactor::OnDone() {
  {
    std::lock_guard lock(mutex_);
    generation_.reset();
    if (!outcome_->ok()) metrics_.CountFailure(*outcome_);
    metrics_.CountRequest(Api::kGrpc, "Generate", model_, ErrorCode(*outcome_));
  }
  self_.reset();
}

}  // namespace hippodrome
