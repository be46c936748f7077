// By what a call is found again: in answers, in logs, and in the traces of whoever asked.
#ifndef HIPPODROME_SERVER_CALLS_CALL_IDS_H_
#define HIPPODROME_SERVER_CALLS_CALL_IDS_H_

#include <string>
#include <string_view>

namespace hippodrome {

// Names of headers in HTTP, and of metadata in gRPC.
constexpr char kRequestIdHeader[] = "x-request-id";
constexpr char kTraceparentHeader[] = "traceparent";

struct CallIds {
  std::string request_id;
  std::string trace_id;  // 32 hexadecimal digits in lower case
  std::string span_id;   // 16 of them: what this server does of the trace
  bool sampled = false;  // the caller records the trace

  // As W3C's Trace Context writes it in `traceparent`.
  std::string Traceparent() const;
};

// For a call that came with these; empty: without. A request id of 1 to 128 of [A-Za-z0-9._:-] is
// taken over, and so is the trace of a traceparent that is as W3C says; all else is made anew, at
// random.
CallIds NewCallIds(std::string_view request_id, std::string_view traceparent);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_CALLS_CALL_IDS_H_
