// Who asks.
#ifndef HIPPODROME_SERVER_BATCHING_CALLER_H_
#define HIPPODROME_SERVER_BATCHING_CALLER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "server/metrics/metrics.h"

namespace hippodrome {

// One call of a client. Copies stay the same call: what is submitted for one of them, many prompts
// perhaps, counts as one beside the client's other calls.
struct Caller {
  using Clock = std::chrono::steady_clock;

  // Implicit: an Api alone is a client without a name, who waits for ever.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Caller(Api api = Api::kHttp, std::string client = "",
         Clock::time_point deadline = Clock::time_point::max())
      : api(api), client(std::move(client)), deadline(deadline) {}

  Api api;
  std::string client;          // as ClientOf() says; all without a name are one
  Clock::time_point deadline;  // the client's own, after which nobody wants the answer
  uint64_t number = Next();    // of the call

 private:
  static uint64_t Next() {
    static std::atomic<uint64_t> next = 0;
    return next.fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_CALLER_H_
