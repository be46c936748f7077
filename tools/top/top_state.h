// What `top` knows: readings of /metrics in, frames out.
#ifndef HIPPODROME_TOOLS_TOP_TOP_STATE_H_
#define HIPPODROME_TOOLS_TOP_TOP_STATE_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/client/metrics_text.h"
#include "tools/top/top_screen.h"

namespace hippodrome {

class TopState {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit TopState(const std::string& address) { frame_.address = address; }

  // What /metrics said at `time`, or why it said nothing; `clock` is that time for people. Nothing
  // changes while paused.
  void Add(const absl::StatusOr<std::string>& text, Time time, const std::string& clock);

  void TogglePause() { frame_.paused = !frame_.paused; }
  // Rates, or totals since the server began.
  void ToggleTotals();

  const TopFrame& frame() const { return frame_; }

 private:
  struct Reading {
    MetricsText metrics;
    Time time;
  };

  void Refresh();
  void Remember();

  TopFrame frame_;
  std::optional<Reading> before_, now_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TOP_TOP_STATE_H_
