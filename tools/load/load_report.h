// What is said about a sweep: tables, rows of a benchmark's report, charts.
#ifndef HIPPODROME_TOOLS_LOAD_LOAD_REPORT_H_
#define HIPPODROME_TOOLS_LOAD_LOAD_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/load/load_figures.h"
#include "tools/load/load_schedule.h"
#include "tools/plots/svg.h"

namespace hippodrome {

// A point of a sweep.
struct LoadPoint {
  LoadPlan plan;
  LoadFigures figures;
  int64_t retried = 0;
  double client_processors = 0;
};

// A figure by its name in reports, "time_to_first_token_p50".
struct LoadFigure {
  std::string name;
  double value = 0;
  std::string unit;
  double limit = 0;  // the most that the offered rate allows; 0: none known
};

// All figures of a point, in a fixed order; percentiles of what never was are left out.
// `tokens`: new tokens of each request; 0: they differ, or there are none.
std::vector<LoadFigure> FiguresByName(const LoadPoint& point, int64_t tokens);

// "4 requests/s", "16 clients".
std::string PointName(const LoadPlan& plan);
// A table for people. Warns where the client itself was late.
std::string PointTable(const LoadPoint& point, const LatencyLimits& limits);
// Counts of requests, and of what they ended with.
nlohmann::json PointCounts(const LoadPoint& point);

// Time to first token, or to the answer of what has no tokens, and below it goodput, or
// throughput where nothing is limited, against the rate or the clients. `title`: what ran.
Drawing DrawSweep(const std::vector<LoadPoint>& points, const LatencyLimits& limits,
                  const std::string& title);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LOAD_LOAD_REPORT_H_
