// What is written down of a call, over HTTP or gRPC.
#ifndef HIPPODROME_SERVER_CALLS_CALL_RECORD_H_
#define HIPPODROME_SERVER_CALLS_CALL_RECORD_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "server/calls/call_ids.h"
#include "server/metrics/metrics.h"

namespace hippodrome {

struct CallTokens {
  int64_t prompt = 0;     // taken in
  int64_t generated = 0;  // given out
};

// One call, from its first byte until its answer is on its way. Finish() counts it and writes its
// line of the access log, once; a record that dies unfinished is one whose client left, or whose
// work broke off with an exception.
class CallRecord {
 public:
  using Clock = std::chrono::steady_clock;

  // Begins now. `metrics` and `route`, which is of a fixed list, must outlive it.
  CallRecord(Metrics& metrics, Api api, const char* route = kNoRoute)
      : metrics_(metrics), api_(api), route_(route) {}
  ~CallRecord();
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  // What the client sent of these; empty: nothing. Without this the call has ids of its own.
  void Identify(std::string_view request_id, std::string_view traceparent) {
    ids_ = NewCallIds(request_id, traceparent);
  }
  const CallIds& ids();

  // `method`: of HTTP; null without a route.
  void set_route(const char* method, const char* route) {
    method_ = method;
    route_ = route;
  }
  // The answer is a stream, until the call has ended.
  void BeginStream();
  // That answers; "" where none does.
  void set_model(std::string model) { model_ = std::move(model); }
  // The name of the key that the client used; never the key.
  void set_key(std::string name) { key_ = std::move(name); }
  void set_tokens(const CallTokens& tokens) { tokens_ = tokens; }
  // That a status which says no is what was asked for, and no failure: readiness.
  void set_probe(bool probe) { probe_ = probe; }
  // That 429 is due to a limit of the client's own, and says nothing of the server's load.
  void set_limited(bool limited) { limited_ = limited; }

  // What the call holds until Release(), which comes before the last byte of the answer: a client
  // that has that may count on it.
  void Hold(std::shared_ptr<const void> held) { held_ = std::move(held); }
  void Release() { held_.reset(); }

  // For one of many requests that come as one call: with the same ids, api, route and key.
  std::unique_ptr<CallRecord> Part();

  // Bytes of bodies, or of messages.
  void Received(int64_t bytes) { received_ += bytes; }
  void Sent(int64_t bytes);

  // The call has ended with this. Later calls change nothing. Throws nothing.
  void Finish(int http_status) noexcept;
  void Finish(const absl::Status& status) noexcept;
  // There was no call: a connection was closed on the way to one.
  void Drop();

 private:
  void Finish(std::string_view code, FailureReason failure) noexcept;
  void LogAccess(std::string_view code, Clock::time_point end);

  Metrics& metrics_;
  const Api api_;
  const Clock::time_point begin_ = Clock::now();
  std::optional<Clock::time_point> first_byte_;  // of the answer
  const char* method_ = nullptr;
  const char* route_;
  std::optional<CallIds> ids_;
  std::string model_, key_;
  CallTokens tokens_;
  std::shared_ptr<const void> held_;
  int64_t received_ = 0;
  int64_t sent_ = 0;
  bool probe_ = false;
  bool streams_ = false;
  bool limited_ = false;
  bool finished_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_CALLS_CALL_RECORD_H_
