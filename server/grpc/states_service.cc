#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "hippodrome/v1/states.grpc.pb.h"
#include "server/grpc/grpc_services.h"
#include "server/guarded.h"
#include "server/handlers/handlers.h"
#include "server/handlers/state_handlers.h"
#include "server/serial_executor.h"

namespace hippodrome {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
// For a client to send a file. A file that does not come holds its room no longer.
constexpr std::chrono::seconds kUploadTime{30};

// ---- A file that goes out

// Lives until gRPC is done with it.
class GetReactor : public grpc::ServerWriteReactor<v1::StateChunk>,
                   public std::enable_shared_from_this<GetReactor> {
 public:
  static std::shared_ptr<GetReactor> New(grpc::CallbackServerContext& context,
                                         std::unique_ptr<CallRecord> call) {
    std::shared_ptr<GetReactor> reactor(new GetReactor(context, std::move(call)));
    reactor->self_ = reactor;
    return reactor;
  }

  // Sends the file, or ends the call with its error.
  void Send(absl::StatusOr<std::shared_ptr<const std::string>> file) {
    std::lock_guard lock(mutex_);
    if (outcome_) return;
    if (!file.ok()) return End(file.status());
    file_ = *std::move(file);
    WriteNext();
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    if (outcome_) return;
    ok ? WriteNext() : End(cancel_reason_());
  }

  void OnCancel() override {
    std::lock_guard lock(mutex_);
    if (!outcome_) End(cancel_reason_());
  }

  void OnDone() override {
    call_->Finish(*outcome_);
    self_.reset();
  }

 private:
  GetReactor(grpc::CallbackServerContext& context, std::unique_ptr<CallRecord> call)
      : context_(context), cancel_reason_(context), call_(std::move(call)) {}

  // All below: mutex_ is held.

  void WriteNext() {
    if (sent_ == file_->size()) return End(absl::OkStatus());
    const size_t bytes = std::min(kChunkBytes, file_->size() - sent_);
    chunk_.set_data(file_->data() + sent_, bytes);
    sent_ += bytes;
    call_->Sent(static_cast<int64_t>(chunk_.ByteSizeLong()));
    StartWrite(&chunk_);
  }

  void End(const absl::Status& status) {
    outcome_ = status;
    call_->Release();
    Finish(ToGrpc(status, context_));
  }

  grpc::CallbackServerContext& context_;
  const CancelReason cancel_reason_;
  const std::unique_ptr<CallRecord> call_;
  std::shared_ptr<GetReactor> self_;  // until OnDone()

  std::mutex mutex_;  // guards all below
  std::shared_ptr<const std::string> file_;
  size_t sent_ = 0;
  v1::StateChunk chunk_;
  std::optional<absl::Status> outcome_;  // how the call ends, once that is known
};

// ---- A file that comes in

// The bytes of files that are being received, over all calls. Thread-safe.
class UploadRoom {
 public:
  explicit UploadRoom(int64_t bytes) : bytes_(bytes) {}

  bool Add(int64_t bytes) {
    if (used_.fetch_add(bytes) + bytes <= bytes_) return true;
    used_.fetch_sub(bytes);
    return false;
  }
  void Remove(int64_t bytes) { used_.fetch_sub(bytes); }

 private:
  const int64_t bytes_;
  std::atomic<int64_t> used_ = 0;
};

// Lives until gRPC is done with it. What a client sends is checked by size as it comes, and as a
// whole by keep().
class PutReactor : public grpc::ServerReadReactor<v1::PutStateRequest>,
                   public std::enable_shared_from_this<PutReactor> {
 public:
  // Keeps a file under a handle; it is called on the thread of `slow`.
  using Keep = std::function<absl::StatusOr<v1::State>(v1::PutStateRequest whole)>;
  // Whether a file may have so many bytes.
  using Check = std::function<absl::Status(int64_t bytes)>;

  // `room` and `slow` must outlive the call. Where the call is not `admitted`, nothing is read.
  static PutReactor* Start(grpc::CallbackServerContext& context, std::unique_ptr<CallRecord> call,
                           const absl::Status& admitted, Check check, Keep keep,
                           v1::State* response, UploadRoom& room, SerialExecutor& slow) {
    std::shared_ptr<PutReactor> reactor(new PutReactor(context, std::move(call), std::move(check),
                                                       std::move(keep), response, room, slow));
    reactor->self_ = reactor;
    std::lock_guard lock(reactor->mutex_);
    if (admitted.ok()) {
      reactor->Begin();
    } else {
      reactor->End(admitted);
    }
    return reactor.get();
  }

  void OnReadDone(bool ok) override {
    std::lock_guard lock(mutex_);
    if (outcome_) return;
    if (!ok) return Complete();
    call_->Received(static_cast<int64_t>(request_.ByteSizeLong()));
    const absl::Status status = Guarded([this] { return Add(); });
    status.ok() ? StartRead(&request_) : End(status);
  }

  void OnCancel() override {
    std::lock_guard lock(mutex_);
    if (!outcome_) End(cancel_reason_());
  }

  void OnDone() override {
    alarm_.Cancel();
    call_->Finish(*outcome_);
    room_.Remove(held_);
    self_.reset();
  }

 private:
  PutReactor(grpc::CallbackServerContext& context, std::unique_ptr<CallRecord> call, Check check,
             Keep keep, v1::State* response, UploadRoom& room, SerialExecutor& slow)
      : context_(context),
        cancel_reason_(context),
        call_(std::move(call)),
        check_(std::move(check)),
        keep_(std::move(keep)),
        response_(response),
        room_(room),
        slow_(slow) {}

  // All below: mutex_ is held.

  void Begin() {
    alarm_.Set(std::chrono::system_clock::now() + kUploadTime,
               [weak = weak_from_this()](bool expired) {
                 const auto reactor = weak.lock();
                 if (expired && reactor != nullptr) reactor->Expire();
               });
    StartRead(&request_);
  }

  void Expire() {
    std::lock_guard lock(mutex_);
    if (outcome_ || complete_) return;
    End(absl::DeadlineExceededError("the file did not come within " +
                                    std::to_string(kUploadTime.count()) + " seconds"));
  }

  absl::Status Add() {
    const auto bytes = static_cast<int64_t>(request_.data().size());
    HIPPODROME_RETURN_IF_ERROR(check_(held_ + bytes));
    if (!room_.Add(bytes)) {
      return ResourceExhausted("too many files are being received: try again");
    }
    held_ += bytes;
    if (first_) whole_.Swap(&request_);
    if (!first_) whole_.mutable_data()->append(request_.data());
    first_ = false;
    return absl::OkStatus();
  }

  void Complete() {
    complete_ = true;
    slow_.Post([reactor = shared_from_this()] {
      absl::StatusOr<v1::State> kept =
          Guarded([&] { return reactor->keep_(std::move(reactor->whole_)); });
      std::lock_guard lock(reactor->mutex_);
      if (reactor->outcome_) return;
      const absl::Status status = kept.status();
      if (status.ok()) {
        *reactor->response_ = *std::move(kept);
        reactor->call_->Sent(static_cast<int64_t>(reactor->response_->ByteSizeLong()));
      }
      reactor->End(status);
    });
  }

  void End(const absl::Status& status) {
    outcome_ = status;
    call_->Release();
    Finish(ToGrpc(status, context_));
  }

  grpc::CallbackServerContext& context_;
  const CancelReason cancel_reason_;
  const std::unique_ptr<CallRecord> call_;
  const Check check_;
  const Keep keep_;
  v1::State* const response_;  // gRPC's, until OnDone()
  UploadRoom& room_;
  SerialExecutor& slow_;
  grpc::Alarm alarm_;
  std::shared_ptr<PutReactor> self_;  // until OnDone()

  std::mutex mutex_;  // guards all below
  v1::PutStateRequest request_;
  v1::PutStateRequest whole_;  // the first message, with the data of all
  bool first_ = true;
  bool complete_ = false;  // all has come; whole_ is keep_()'s
  int64_t held_ = 0;
  std::optional<absl::Status> outcome_;  // how the call ends, once that is known
};

// ---- The service

class StatesService : public v1::States::CallbackService {
 public:
  StatesService(Handlers& handlers, Metrics& metrics, const AccessControl& access)
      : handlers_(handlers.states()),
        metrics_(metrics),
        access_(access),
        room_(handlers_.options().max_bytes_in_transit) {}

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListStatesRequest* request,
                                 v1::ListStatesResponse* response) override {
    return ReplyLater<v1::ListStatesResponse>(
        *context, BeginCall(*context, metrics_, "List", *request), response,
        [this](const Caller& caller) { return handlers_.List(caller); });
  }

  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context,
                                   const v1::DeleteStateRequest* request,
                                   v1::DeleteStateResponse* response) override {
    return ReplyLater<v1::DeleteStateResponse>(
        *context, BeginCall(*context, metrics_, "Delete", *request), response,
        [this, request](const Caller& caller) -> absl::StatusOr<v1::DeleteStateResponse> {
          HIPPODROME_RETURN_IF_ERROR(handlers_.Delete(request->handle(), caller));
          return v1::DeleteStateResponse();
        });
  }

  grpc::ServerUnaryReactor* Fork(grpc::CallbackServerContext* context,
                                 const v1::ForkStateRequest* request,
                                 v1::ForkStateResponse* response) override {
    return ReplyLater<v1::ForkStateResponse>(
        *context, BeginCall(*context, metrics_, "Fork", *request), response,
        [this, request](const Caller& caller) { return handlers_.Fork(*request, caller); });
  }

  grpc::ServerWriteReactor<v1::StateChunk>* Get(grpc::CallbackServerContext* context,
                                                const v1::GetStateRequest* request) override {
    auto call = BeginCall(*context, metrics_, "Get", *request);
    call->BeginStream();
    const auto caller = AdmittedCaller(*context, *call);
    const auto reactor = GetReactor::New(*context, std::move(call));
    if (!caller.ok()) {
      reactor->Send(caller.status());
      return reactor.get();
    }
    executor_.Post([this, reactor, handle = request->handle(), caller = *caller] {
      using File = absl::StatusOr<std::shared_ptr<const std::string>>;
      reactor->Send(Guarded([&]() -> File { return handlers_.Get(handle, caller); }));
    });
    return reactor.get();
  }

  grpc::ServerReadReactor<v1::PutStateRequest>* Put(grpc::CallbackServerContext* context,
                                                    v1::State* response) override {
    auto call = BeginCall(*context, metrics_, "Put");
    auto caller = AdmittedCaller(*context, *call);
    // Before anything is read in vain.
    if (caller.ok() && !handlers_.CheckImport().ok()) caller = handlers_.CheckImport();
    auto keep = [this, who = caller.value_or(Caller())](v1::PutStateRequest whole) {
      std::optional<int64_t> ttl;
      if (whole.has_state_ttl()) ttl = whole.state_ttl();
      return handlers_.Put(whole.handle(), std::move(*whole.mutable_data()), ttl, who);
    };
    const auto check = [this](int64_t bytes) { return handlers_.CheckBytes(bytes); };
    return PutReactor::Start(*context, std::move(call), caller.status(), check, keep, response,
                             room_, executor_);
  }

 private:
  absl::StatusOr<Caller> AdmittedCaller(grpc::CallbackServerContext& context, CallRecord& call) {
    return Admitted(access_, context, call,
                    [](const Caller& caller) -> absl::StatusOr<Caller> { return caller; });
  }

  // Answers a call with what work(caller) returns, which may wait for a disk or another server.
  template <typename Response>
  grpc::ServerUnaryReactor* ReplyLater(
      grpc::CallbackServerContext& context, std::unique_ptr<CallRecord> record, Response* response,
      std::function<absl::StatusOr<Response>(const Caller& caller)> work) {
    grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
    const std::shared_ptr<CallRecord> call = std::move(record);
    const auto caller = AdmittedCaller(context, *call);
    const auto answer = [&context, reactor, call,
                         response](const absl::StatusOr<Response>& result) {
      call->Release();
      if (result.ok()) {
        *response = *result;
        call->Sent(static_cast<int64_t>(response->ByteSizeLong()));
      }
      call->Finish(result.status());
      reactor->Finish(ToGrpc(result.status(), context));
    };
    if (!caller.ok()) {
      answer(caller.status());
    } else {
      executor_.Post([answer, caller = *caller, work = std::move(work)] {
        answer(Guarded([&] { return work(caller); }));
      });
    }
    return reactor;
  }

  StateHandlers& handlers_;
  Metrics& metrics_;
  const AccessControl& access_;
  UploadRoom room_;
  SerialExecutor executor_;  // for all that takes a while
};

}  // namespace

std::unique_ptr<grpc::Service> NewStatesService(Handlers& handlers, Metrics& metrics,
                                                const AccessControl& access) {
  return std::make_unique<StatesService>(handlers, metrics, access);
}

}  // namespace hippodrome
