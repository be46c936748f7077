// A stream of calls of an encoder, answered in order. Includes gRPC: for encoding_service.cc alone.
#ifndef HIPPODROME_SERVER_GRPC_STREAM_REACTOR_H_
#define HIPPODROME_SERVER_GRPC_STREAM_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/grpc/courier.h"
#include "server/grpc/generate_reactor.h"
#include "server/guarded.h"
#include "server/handlers/encoding_handlers.h"
#include "server/metrics/metrics.h"
#include "server/status_map.h"

namespace hippodrome {

// Reads ahead, so that the requests of one stream run together; a client that does not take its
// answers blocks its own stream alone. The first failure ends the stream, behind the answers before
// it. Lives until gRPC is done with it.
template <typename Request, typename Response>
class StreamReactor : public grpc::ServerBidiReactor<Request, Response>,
                      public std::enable_shared_from_this<StreamReactor<Request, Response>> {
 public:
  struct Call {
    std::string model;  // for the metrics
    Answer<Response> answer;
  };
  using Handle = std::function<Call(const Request& request)>;

  // `handle` begins the work of one request. `metrics` and `courier` must outlive the stream.
  static StreamReactor* Start(Handle handle, const char* route, Metrics& metrics,
                              Courier& courier) {
    std::shared_ptr<StreamReactor> reactor(
        new StreamReactor(std::move(handle), route, metrics, courier));
    reactor->self_ = reactor;
    std::lock_guard lock(reactor->mutex_);
    reactor->Read();
    return reactor.get();
  }

  void OnReadDone(bool ok) override {
    // Without the lock, for it takes a while. Nobody else touches request_ meanwhile.
    std::optional<Call> call;
    if (ok) call = handle_(request_);
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
    if (!ok) Conclude(absl::CancelledError());
    Advance();
  }

  // Also called when the client's deadline has passed.
  void OnCancel() override {
    std::lock_guard lock(mutex_);
    Conclude(absl::CancelledError());
    Advance();
  }

  void OnDone() override { self_.reset(); }

 private:
  // Requests of one stream that are here at once.
  static constexpr size_t kMostCalls = 64;

  StreamReactor(Handle handle, const char* route, Metrics& metrics, Courier& courier)
      : handle_(std::move(handle)), route_(route), metrics_(metrics), courier_(courier) {}

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
    (*calls_.back().answer)->OnReady([weak = this->weak_from_this(), &courier = courier_] {
      courier.Post([weak] {
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
      this->Finish(ToGrpc(*outcome_));
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
    model_ = std::move(call.model);
    if (!answer->ok()) return answer->status();
    calls_.pop_front();
    metrics_.CountRequest(Api::kGrpc, route_, model_, ErrorCode(absl::OkStatus()));
    response_ = **std::move(answer);
    writing_ = true;
    this->StartWrite(&response_);
    return absl::OkStatus();
  }

  // Settles how the stream ends and gives up what is left.
  void Conclude(const absl::Status& status) {
    if (outcome_) return;
    outcome_ = status;
    calls_.clear();
    if (status.ok()) return;
    metrics_.CountFailure(status);
    metrics_.CountRequest(Api::kGrpc, route_, model_, ErrorCode(status));
  }

  const Handle handle_;
  const char* const route_;
  Metrics& metrics_;
  Courier& courier_;
  std::shared_ptr<StreamReactor> self_;  // until OnDone()
  Request request_;                      // that is being read

  std::mutex mutex_;        // guards all below
  std::deque<Call> calls_;  // oldest first
  std::string model_;       // of the latest answer
  Response response_;       // that is being written
  bool reading_ = false;
  bool writing_ = false;
  bool closed_ = false;                  // no more requests will be read
  bool finished_ = false;                // Finish() was called
  std::optional<absl::Status> outcome_;  // how the stream ends, once that is known
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_STREAM_REACTOR_H_
