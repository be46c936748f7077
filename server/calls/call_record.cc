#include "server/calls/call_record.h"

#include <charconv>
#include <exception>

#include "server/log/log.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

// 501 and 505 are about what clients may not ask for; the others from 500 on, about this server.
FailureReason FailureOf(int http_status) {
  if (http_status < 400) return FailureReason::kNone;
  switch (http_status) {
    case 401:
    case 403:
      return FailureReason::kAuth;
    case 408:
    case 504:
      return FailureReason::kDeadline;
    case 429:
    case 503:
      return FailureReason::kOverloaded;
    case 499:
      return FailureReason::kCancelled;
    case 501:
    case 505:
      return FailureReason::kValidation;
    default:
      return http_status < 500 ? FailureReason::kValidation : FailureReason::kInternal;
  }
}

}  // namespace

CallRecord::~CallRecord() {
  if (finished_) return;
  const absl::StatusCode code =
      std::uncaught_exceptions() > 0 ? absl::StatusCode::kInternal : absl::StatusCode::kCancelled;
  if (api_ == Api::kHttp) {
    Finish(code == absl::StatusCode::kInternal ? 500 : 499);
  } else {
    Finish(absl::Status(code, ""));
  }
}

const CallIds& CallRecord::ids() {
  if (!ids_) ids_ = NewCallIds("", "");
  return *ids_;
}

std::unique_ptr<CallRecord> CallRecord::Part() {
  auto part = std::make_unique<CallRecord>(metrics_, api_, route_);
  part->ids_ = ids();
  part->key_ = key_;
  return part;
}

void CallRecord::Sent(int64_t bytes) {
  if (!first_byte_ && bytes > 0) first_byte_ = Clock::now();
  sent_ += bytes;
}

void CallRecord::Finish(int http_status) noexcept {
  char code[16];
  const char* end = std::to_chars(code, code + sizeof(code), http_status).ptr;
  Finish(std::string_view(code, static_cast<size_t>(end - code)), FailureOf(http_status));
}

void CallRecord::Finish(const absl::Status& status) noexcept {
  if (finished_) return;
  limited_ = IsLimitError(status);
  try {
    Finish(ErrorCode(status), FailureOf(HttpStatus(status)));
  } catch (const std::exception&) {
    // Without memory for the code's name.
    Finish("internal", FailureOf(HttpStatus(status)));
  }
}

void CallRecord::BeginStream() {
  streams_ = true;
  metrics_.CountStreams(1);
}

void CallRecord::Drop() {
  finished_ = true;
  if (std::exchange(streams_, false)) metrics_.CountStreams(-1);
}

void CallRecord::Finish(std::string_view code, FailureReason failure) noexcept {
  if (finished_) return;
  Drop();
  try {
    const Clock::time_point end = Clock::now();
    const bool limited = limited_ && failure == FailureReason::kOverloaded;
    if (!probe_) metrics_.CountFailure(limited ? FailureReason::kLimit : failure);
    metrics_.CountRequest(api_, route_, model_, code);
    if (api_ == Api::kHttp) metrics_.MeasureHttp(route_, end - begin_, received_, sent_);
    if (AccessLog().open()) LogAccess(code, end);
  } catch (const std::exception&) {
    // Without memory a call goes unwritten; there is nobody to tell.
  }
}

void CallRecord::LogAccess(std::string_view code, Clock::time_point end) {
  LogLine line(LogLevel::kInfo, "access");
  line.Text("api", Name(api_));
  if (method_ != nullptr) line.Text("method", method_);
  line.Text("route", route_).Text("code", code).Seconds("duration_s", end - begin_);
  if (first_byte_) line.Seconds("first_byte_s", *first_byte_ - begin_);
  line.Integer("bytes_in", received_).Integer("bytes_out", sent_);
  if (tokens_.prompt > 0) line.Integer("prompt_tokens", tokens_.prompt);
  if (tokens_.generated > 0) line.Integer("generated_tokens", tokens_.generated);
  if (!model_.empty()) line.Text("model", model_);
  if (!key_.empty()) line.Text("key", key_);
  line.Text("request_id", ids().request_id)
      .Text("trace_id", ids().trace_id)
      .Text("span_id", ids().span_id);
  AccessLog().Write(line.Take());
}

}  // namespace hippodrome
