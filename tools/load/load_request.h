// One request of a load, and what came of it.
#ifndef HIPPODROME_TOOLS_LOAD_LOAD_REQUEST_H_
#define HIPPODROME_TOOLS_LOAD_LOAD_REQUEST_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hippodrome {

using LoadClock = std::chrono::steady_clock;

enum class LoadTask : uint8_t {
  kGenerate,  // a stream of new tokens
  kPredict,   // the scores of an encoder's labels
};

struct LoadRequest {
  std::string text;                // the prompt, or
  std::vector<int32_t> token_ids;  // its tokens, where it has no text
  int64_t max_tokens = 0;
};

enum class LoadOutcome : uint8_t {
  kAnswered,
  kRefused,  // for want of room: 429, 503; RESOURCE_EXHAUSTED, UNAVAILABLE with retry-after
  kFailed,
  kNotSent,  // too many were outstanding
};

// Tokens that came together.
struct TokenArrival {
  LoadClock::time_point time;
  int64_t tokens = 1;
};

struct LoadRecord {
  LoadClock::time_point intended;  // when it was to be sent
  LoadClock::time_point sent;      // when it was, for the first time
  LoadClock::time_point end;
  std::vector<TokenArrival> arrivals;
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  LoadOutcome outcome = LoadOutcome::kFailed;
  // "200", "429", "OK", "RESOURCE_EXHAUSTED"; of what no server said "connect", "tls", "broken",
  // "timeout", "malformed"; of what was not sent "not_sent".
  std::string code;
  std::string message;      // of a failure, in a line
  int64_t retry_after = 0;  // seconds, as the server asks for; 0: it does not
  bool counted = false;     // not of the warm-up
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LOAD_LOAD_REQUEST_H_
