#include "server/batching/encoding_batcher.h"

#include <algorithm>
#include <iterator>

#include "absl/cleanup/cleanup.h"
#include "engine/base/status.h"
#include "engine/models/bigs/encoder_head.h"
#include "kernels/device_error.h"
#include "server/guarded.h"

namespace hippodrome {
namespace {

// The heartbeat while there is nothing to do.
constexpr std::chrono::milliseconds kIdleWait{500};

std::string Numbers(int64_t inputs, int64_t tokens) {
  return std::to_string(inputs) + " inputs with " + std::to_string(tokens) + " tokens";
}

int64_t OutputBytes(const BigsConfig& config, const EncoderRequest& request) {
  const int64_t rows = std::max<int64_t>(std::ssize(request.rows), 1);
  const bool embeds = request.task != EncoderTask::kHead;
  const int64_t columns = embeds ? config.hidden_size : LogitsPerAnswer(config);
  return rows * columns * static_cast<int64_t>(sizeof(float));
}

}  // namespace

EncodingBatcher::EncodingBatcher(EncoderEngine& engine, const EncodingOptions& options,
                                 EncoderMetrics& metrics)
    : engine_(engine),
      options_(options),
      policy_{engine.max_batch_tokens(), options.max_batch_delay},
      metrics_(metrics),
      places_(options.max_queue, options.max_client_share),
      tokens_(options.max_queued_tokens, options.max_client_share),
      outputs_(options.max_output_bytes, options.max_client_share),
      heartbeat_(Clock::now().time_since_epoch().count()),
      thread_([this] { Loop(); }) {}

EncodingBatcher::~EncodingBatcher() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

EncodingBatcher::Clock::time_point EncodingBatcher::heartbeat() const {
  return Clock::time_point(Clock::duration(heartbeat_.load(std::memory_order_acquire)));
}

// ---- Commands, on any thread --------------------------------------------------------------------

absl::Status EncodingBatcher::CheckSize(int64_t requests, int64_t tokens) const {
  if (requests <= options_.max_queue && tokens <= options_.max_queued_tokens) {
    return absl::OkStatus();
  }
  metrics_.Rejected("never_fits");
  return absl::OutOfRangeError("the call has " + Numbers(requests, tokens) +
                               " as padded, but the queue takes at most " +
                               Numbers(options_.max_queue, options_.max_queued_tokens));
}

EncodingBatcher::Size EncodingBatcher::Measure(const std::vector<EncoderRequest>& requests) const {
  Size size{.requests = std::ssize(requests)};
  for (const EncoderRequest& request : requests) {
    size.tokens += engine_.PaddedLength(std::ssize(request.ids));
    size.output_bytes += OutputBytes(engine_.config(), request);
  }
  return size;
}

absl::Status EncodingBatcher::CheckRoom(const Caller& caller, const Size& size) const {
  if (closed_) {
    metrics_.Rejected("stopping");
    return Unavailable(closed_reason_);
  }
  const bool full = places_.Full(size.requests) || tokens_.Full(size.tokens);
  if (full || places_.Exceeds(caller, size.requests) || tokens_.Exceeds(caller, size.tokens)) {
    const QueueRefusal refusal = RefusalOf(caller, full);
    metrics_.Rejected(refusal.reason);
    return ResourceExhausted(std::string(refusal.text) + ": " +
                             Numbers(places_.held(), tokens_.held()) + " wait, and the call has " +
                             Numbers(size.requests, size.tokens));
  }
  const bool outputs_full = outputs_.Full(size.output_bytes);
  if (outputs_full || outputs_.Exceeds(caller, size.output_bytes)) {
    metrics_.Rejected(RefusalOf(caller, outputs_full).reason);
    return ResourceExhausted("too many answers wait for their clients: they take " +
                             std::to_string(outputs_.held()) + " bytes");
  }
  return absl::OkStatus();
}

// Where memory ends, what has entered runs for nobody, and the rest is not counted. REQUIRES:
// mutex_ is held.
void EncodingBatcher::Enter(const Job& job, const Size& size, Clock::time_point expires) {
  const Caller& caller = job->caller();
  Size left = size;  // to enter
  places_.Add(caller, size.requests);
  const absl::Cleanup no_places = [&] { places_.Remove(caller, left.requests); };
  tokens_.Add(caller, size.tokens);
  const absl::Cleanup no_tokens = [&] { tokens_.Remove(caller, left.tokens); };
  outputs_.Add(caller, size.output_bytes);
  absl::Cleanup no_outputs = [&] { outputs_.Remove(caller, size.output_bytes); };
  for (size_t i = 0; i < job->requests().size(); ++i) {
    const int64_t tokens = engine_.PaddedLength(std::ssize(job->requests()[i].ids));
    waiting_.Add(caller, static_cast<double>(tokens),
                 {job, i, {tokens, job->submitted()}, expires, caller.background});
    --left.requests;
    left.tokens -= tokens;
    pending_.fetch_add(1, std::memory_order_acq_rel);
  }
  std::move(no_outputs).Cancel();
}

absl::StatusOr<std::unique_ptr<Encoding>> EncodingBatcher::Submit(
    EncodingCall call, std::shared_ptr<const void> owner) {
  const Size size = Measure(call.requests);
  HIPPODROME_RETURN_IF_ERROR(CheckSize(size.requests, size.tokens));
  HIPPODROME_RETURN_IF_ERROR(call.caller.Reserve(size.tokens, size.output_bytes));
  const auto job = std::make_shared<EncodingJob>(std::move(call), Clock::now());
  const Caller& caller = job->caller();
  const Clock::time_point expires = caller.WaitsUntil(job->submitted(), options_.max_wait);
  {
    std::lock_guard lock(mutex_);
    HIPPODROME_RETURN_IF_ERROR(CheckRoom(caller, size));
    Enter(job, size, expires);
    next_expiry_ = std::min(next_expiry_, expires);
    Publish();
  }
  wake_.notify_one();
  return std::unique_ptr<Encoding>(new Encoding(*this, std::move(owner), job, size.output_bytes));
}

void EncodingBatcher::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

void EncodingBatcher::Remove(const Encoding& encoding) {
  const bool complete = encoding.job_->complete();
  std::lock_guard lock(mutex_);
  outputs_.Remove(encoding.job_->caller(), encoding.output_bytes_);
  if (complete) return;  // to look through all that wait takes long where much does
  const std::vector<Waiting> cancelled =
      waiting_.RemoveIf([&](const Waiting& w) { return w.job == encoding.job_; });
  if (cancelled.empty()) return;
  metrics_.Cancelled(std::ssize(cancelled));
  Leave(cancelled);
}

// They are no longer in the queue. REQUIRES: mutex_ is held.
void EncodingBatcher::Leave(const std::vector<Waiting>& requests) {
  for (const Waiting& request : requests) ReleaseShare(request);
  pending_.fetch_sub(std::ssize(requests), std::memory_order_acq_rel);
  Publish();
}

// REQUIRES: mutex_ is held.
void EncodingBatcher::ReleaseShare(const Waiting& request) {
  places_.Remove(request.job->caller(), 1);
  tokens_.Remove(request.job->caller(), request.input.tokens);
}

// What runs is told as well; its outputs will find their call over.
void EncodingBatcher::Abort(const absl::Status& reason) {
  std::vector<Job> jobs;
  {
    std::lock_guard lock(mutex_);
    for (const Waiting& input : running_) jobs.push_back(input.job);
    const std::vector<Waiting> ended = waiting_.RemoveIf([](const Waiting&) { return true; });
    for (const Waiting& input : ended) jobs.push_back(input.job);
    Leave(ended);
  }
  for (const Job& job : jobs) job->Fail(reason);
}

// REQUIRES: mutex_ is held.
void EncodingBatcher::Publish() {
  metrics_.SetLoad({.interactive = static_cast<int64_t>(waiting_.interactive().size()),
                    .background = static_cast<int64_t>(waiting_.background().size())},
                   static_cast<int64_t>(running_.size()));
}

// ---- The loop -----------------------------------------------------------------------------------

void EncodingBatcher::Loop() {
  try {
    for (bool goes_on = true; goes_on;) {
      const absl::Status status = Guarded([&] {
        goes_on = NextBatch();
        return goes_on ? RunBatch() : absl::OkStatus();
      });
      if (!status.ok()) FailRunning(status);
    }
  } catch (const DeviceError& error) {
    FailAll(Internal(error.what()));
    return;  // and with the loop the heartbeat stops
  }
  Abort(Unavailable("the server has stopped"));
}

// Waits for a batch and moves it to running_. False when the loop must end.
bool EncodingBatcher::NextBatch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Clock::time_point now = Clock::now();
    heartbeat_.store(now.time_since_epoch().count(), std::memory_order_release);
    if (const std::vector<Waiting> expired = TakeExpired(now); !expired.empty()) {
      lock.unlock();
      for (const Waiting& request : expired) Expire(request, now);
      lock.lock();
      continue;
    }
    Clock::time_point until = std::min(now + kIdleWait, next_expiry_);
    if (waiting_.size() > 0 && TakeBatch(now, until)) return true;
    wake_.wait_until(lock, until);
  }
  return false;
}

// True if a batch starts now; else `until` is no later than when one does. REQUIRES: mutex_ is
// held; somebody waits.
bool EncodingBatcher::TakeBatch(Clock::time_point now, Clock::time_point& until) {
  const std::vector<const Queue::Entry*> line = waiting_.Line();
  std::vector<QueuedInput> inputs;
  inputs.reserve(line.size());
  for (const Queue::Entry* entry : line) inputs.push_back(entry->item.input);
  const BatchChoice choice = ChooseBatch(inputs, policy_);
  if (choice.start > now) {
    until = std::min(until, choice.start);
    return false;
  }
  running_.reserve(choice.members.size());
  for (const size_t place : choice.members) {
    running_.push_back(waiting_.Take(*line[place]));
    ReleaseShare(running_.back());
  }
  Publish();
  return true;
}

// REQUIRES: mutex_ is held.
std::vector<EncodingBatcher::Waiting> EncodingBatcher::TakeExpired(Clock::time_point now) {
  if (now < next_expiry_) return {};
  next_expiry_ = Clock::time_point::max();
  std::vector<Waiting> expired = waiting_.RemoveIf([&](const Waiting& request) {
    if (request.expires <= now) return true;
    next_expiry_ = std::min(next_expiry_, request.expires);
    return false;
  });
  if (!expired.empty()) Leave(expired);
  return expired;
}

void EncodingBatcher::Expire(const Waiting& request, Clock::time_point now) {
  EncodingJob& job = *request.job;
  const bool deadline = job.caller().deadline <= now;
  const absl::Status status =
      deadline ? absl::DeadlineExceededError("the client's deadline has passed in the queue")
               : ResourceExhausted("the server is too busy: there was no room for the call in " +
                                   std::to_string(options_.max_wait.count()) + " ms");
  if (job.Fail(status)) metrics_.Rejected(deadline ? "deadline" : "max_wait");
}

absl::Status EncodingBatcher::RunBatch() {
  std::vector<const EncoderRequest*> requests;
  requests.reserve(running_.size());
  for (const Waiting& input : running_) requests.push_back(&input.job->requests()[input.index]);
  const Clock::time_point start = Clock::now();
  std::vector<absl::StatusOr<EncoderOutput>> outputs = RunEngine(requests);
  const Clock::time_point end = Clock::now();
  Count(start, end);
  Deliver(std::move(outputs), end);
  return absl::OkStatus();
}

// What cannot run together runs one after the other, so that nobody fails with a neighbour.
std::vector<absl::StatusOr<EncoderOutput>> EncodingBatcher::RunEngine(
    std::span<const EncoderRequest* const> requests) {
  absl::StatusOr<std::vector<EncoderOutput>> outputs = Guarded(
      [&]() -> absl::StatusOr<std::vector<EncoderOutput>> { return engine_.Run(requests); });
  if (!outputs.ok() && requests.size() == 1) return {outputs.status()};
  std::vector<absl::StatusOr<EncoderOutput>> results;
  results.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    results.push_back(outputs.ok() ? std::move((*outputs)[i])
                                   : RunEngine(requests.subspan(i, 1)).front());
  }
  return results;
}

void EncodingBatcher::Count(Clock::time_point start, Clock::time_point end) {
  EncodedBatch batch;
  for (const Waiting& input : running_) {
    ++batch.inputs;
    const int64_t tokens = std::ssize(input.job->requests()[input.index].ids);
    batch.tokens += tokens;
    batch.padded_tokens += input.input.tokens;
    metrics_.Encoded(input.job->api(), input.job->caller().Waited(input.input.arrived, start),
                     end - start, tokens);
  }
  metrics_.EngineStep(end - start, batch);
}

// Clients are told before the requests stop counting as pending, so that a drain waits for them.
void EncodingBatcher::Deliver(std::vector<absl::StatusOr<EncoderOutput>> outputs,
                              Clock::time_point now) {
  for (size_t i = 0; i < running_.size(); ++i) {
    const Job& job = running_[i].job;
    if (!outputs[i].ok()) {
      job->Fail(outputs[i].status());
    } else if (job->Deliver(running_[i].index, *std::move(outputs[i]))) {
      metrics_.Finished(job->api(), job->caller().Waited(job->submitted(), now));
    }
  }
  Retire();
}

void EncodingBatcher::Retire() {
  std::vector<Waiting> done;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  done.swap(running_);
  pending_.fetch_sub(static_cast<int64_t>(done.size()), std::memory_order_acq_rel);
  Publish();
}

void EncodingBatcher::FailRunning(const absl::Status& reason) {
  for (const Waiting& input : running_) input.job->Fail(reason);
  Retire();
}

// The engine is lost.
void EncodingBatcher::FailAll(const absl::Status& reason) {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    closed_reason_ = "the model has failed: " + Message(reason);
  }
  Abort(reason);
  Retire();
}

// ---- Encoding -----------------------------------------------------------------------------------

Encoding::~Encoding() {
  job_->OnReady(nullptr);
  batcher_.Remove(*this);
}

}  // namespace hippodrome
