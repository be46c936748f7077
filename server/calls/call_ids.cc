#include "server/calls/call_ids.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

namespace hippodrome {
namespace {

constexpr char kDigits[] = "0123456789abcdef";
constexpr size_t kMostIdBytes = 128;
constexpr size_t kTraceDigits = 32;
constexpr size_t kSpanDigits = 16;

// version "-" trace-id "-" parent-id "-" flags
constexpr size_t kTraceAt = 3;
constexpr size_t kSpanAt = kTraceAt + kTraceDigits + 1;
constexpr size_t kFlagsAt = kSpanAt + kSpanDigits + 1;
constexpr size_t kTraceparentBytes = kFlagsAt + 2;

// `digits` random hexadecimal digits, a multiple of 16, that are not all 0.
std::string RandomHex(size_t digits) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string text;
  text.reserve(digits);
  while (text.size() < digits) {
    const uint64_t bits = random() | 1;
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(bits >> shift) & 15];
  }
  return text;
}

bool IsHex(std::string_view text) {
  return text.find_first_not_of(kDigits) == std::string_view::npos;
}

// An id of a trace or a span: all 0 is none.
bool IsId(std::string_view text) {
  return IsHex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

bool IsRequestId(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
  };
  return !text.empty() && text.size() <= kMostIdBytes &&
         std::all_of(text.begin(), text.end(), allowed);
}

// Later versions may have more behind another dash; this one may not.
bool IsTraceparent(std::string_view text) {
  if (text.size() < kTraceparentBytes) return false;
  const std::string_view version = text.substr(0, 2);
  const bool whole =
      text.size() == kTraceparentBytes || (version != "00" && text[kTraceparentBytes] == '-');
  return whole && IsHex(version) && version != "ff" && text[kTraceAt - 1] == '-' &&
         IsId(text.substr(kTraceAt, kTraceDigits)) && text[kSpanAt - 1] == '-' &&
         IsId(text.substr(kSpanAt, kSpanDigits)) && text[kFlagsAt - 1] == '-' &&
         IsHex(text.substr(kFlagsAt, 2));
}

}  // namespace

std::string CallIds::Traceparent() const {
  std::string text = "00-";
  text.reserve(kTraceparentBytes);
  return text.append(trace_id).append("-").append(span_id).append(sampled ? "-01" : "-00");
}

CallIds NewCallIds(std::string_view request_id, std::string_view traceparent) {
  CallIds ids;
  ids.request_id = IsRequestId(request_id) ? std::string(request_id) : RandomHex(32);
  ids.span_id = RandomHex(kSpanDigits);
  if (!IsTraceparent(traceparent)) {
    ids.trace_id = RandomHex(kTraceDigits);
    return ids;
  }
  ids.trace_id = std::string(traceparent.substr(kTraceAt, kTraceDigits));
  const std::string_view last = traceparent.substr(kFlagsAt + 1, 1);
  ids.sampled = std::string_view("13579bdf").find(last) != std::string_view::npos;
  return ids;
}

}  // namespace hippodrome
