// What the records of a load come to.
#ifndef HIPPODROME_TOOLS_LOAD_LOAD_FIGURES_H_
#define HIPPODROME_TOOLS_LOAD_LOAD_FIGURES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/load/load_request.h"
#include "tools/load/load_schedule.h"

namespace hippodrome {

// By nearest rank: the smallest of the values that at least so many percent do not exceed.
struct Percentiles {
  int64_t count = 0;  // of values; 0: nothing else is set
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};
Percentiles PercentilesOf(std::vector<double> values);

// In milliseconds; what is not set limits nothing.
struct LatencyLimits {
  std::optional<double> first_token;
  std::optional<double> between_tokens;  // for each gap of a stream
  std::optional<double> end_to_end;
};

// A load that has ended.
struct LoadRun {
  LoadPlan plan;
  LoadClock::time_point begin;
  std::deque<LoadRecord> records;
  int64_t retried = 0;           // requests that were sent again, each time
  double client_processors = 0;  // processors that the client was busy on
};

struct LoadFigures {
  // Requests that were due after the warm-up.
  int64_t requests = 0;
  int64_t answered = 0;
  int64_t refused = 0;
  int64_t failed = 0;
  int64_t not_sent = 0;
  std::map<std::string, int64_t> codes;  // how those ended
  std::string failure;                   // what the first that failed was told

  // Milliseconds, of those that were answered, from when they were due.
  Percentiles first_token;
  Percentiles end_to_end;
  // Of each gap between tokens, and of each answer's mean over all its tokens but the first.
  Percentiles between_tokens;
  Percentiles per_token;
  // How late requests were sent. More than a little: the client was not fast enough.
  Percentiles lag;

  // The window that rates are taken over: from the end of the warm-up until no more was sent; with
  // a number of requests until the last of them was answered. They count all that came in it.
  double seconds = 0;
  double offered = 0;              // of the open loop: requests per second that were due
  double requests_per_second = 0;  // answers
  double new_tokens_per_second = 0;
  double total_tokens_per_second = 0;  // with those of prompts

  // Requests that were answered within the limits, also as a share of all that were due.
  int64_t good = 0;
  double goodput = 0;  // per second
  double good_share = 0;
};

LoadFigures FiguresOf(const LoadRun& run, const LatencyLimits& limits);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LOAD_LOAD_FIGURES_H_
