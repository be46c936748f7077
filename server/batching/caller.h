// Who asks.
#ifndef HIPPODROME_SERVER_BATCHING_CALLER_H_
#define HIPPODROME_SERVER_BATCHING_CALLER_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/batching/allowance.h"
#include "server/metrics/metrics.h"

namespace hippodrome {

// What calls in the background may hold together, of anything that there is only so much of.
inline constexpr double kBackgroundShare = 0.5;

// One call of a client. Copies stay the same call: what is submitted for one of them, many prompts
// perhaps, counts as one beside the client's other calls.
struct Caller {
  using Clock = std::chrono::steady_clock;

  // Implicit: an Api alone is a client without a name, who waits for ever.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Caller(Api api = Api::kHttp, std::string client = "",
         Clock::time_point deadline = Clock::time_point::max(),
         const std::shared_ptr<Allowance>& allowance = nullptr)
      : api(api), client(std::move(client)), deadline(deadline), allowance(allowance) {}

  absl::Status MayRun(const std::string& model) const {
    const std::shared_ptr<Allowance> held = allowance.lock();
    return held == nullptr ? absl::OkStatus() : held->MayRun(model);
  }
  absl::Status Reserve(int64_t tokens, int64_t bytes) const {
    const std::shared_ptr<Allowance> held = allowance.lock();
    return held == nullptr ? absl::OkStatus() : held->Reserve(tokens, bytes);
  }

  // Until when what came at `arrival` may wait: for `max_wait` (0: for ever), in the background for
  // as long as it takes, and never beyond the deadline.
  Clock::time_point WaitsUntil(Clock::time_point arrival,
                               std::chrono::milliseconds max_wait) const {
    const bool for_ever = background || max_wait.count() == 0;
    return for_ever ? deadline : std::min(deadline, arrival + max_wait);
  }
  // How long somebody has waited for what came at `arrival`; in the background nobody has.
  std::optional<Clock::duration> Waited(Clock::time_point arrival, Clock::time_point now) const {
    return background ? std::nullopt : std::make_optional(now - arrival);
  }

  Api api;
  std::string client;          // its key's name, else as ClientOf() says; all without are one
  std::string key;             // its key's name; empty without keys
  Clock::time_point deadline;  // the client's own, after which nobody wants the answer
  // Null without limits of its own. The transport's, so that it ends with the call and not with
  // what is left of that in a batcher.
  std::weak_ptr<Allowance> allowance;
  bool may_migrate = false;  // its answer can say where to go on, should the server stop
  bool background = false;   // nobody waits for it: it goes behind all those that are not
  uint64_t number = Next();  // of the call

 private:
  static uint64_t Next() {
    static std::atomic<uint64_t> next = 0;
    return next.fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_CALLER_H_
