#include "tools/load/load_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/plots/line_chart.h"

namespace hippodrome {
namespace {

constexpr char kBlue[] = "#1f6fb4";
constexpr char kOrange[] = "#e07b00";
constexpr char kRed[] = "#c0392b";
constexpr char kGreen[] = "#2e8b57";
constexpr char kGrey[] = "#888888";

// A client that is later than this, once in a hundred times, measures itself.
constexpr double kLateMilliseconds = 5;

constexpr int kWidth = 760;
constexpr int kPanelHeight = 300;

struct Latency {
  const char* name;
  const char* title;
  Percentiles LoadFigures::* percentiles;
};
constexpr Latency kLatencies[] = {
    {"time_to_first_token", "first token", &LoadFigures::first_token},
    {"inter_token_latency", "between tokens", &LoadFigures::between_tokens},
    {"time_per_output_token", "per token", &LoadFigures::per_token},
    {"end_to_end", "end to end", &LoadFigures::end_to_end},
    {"client_lag", "client's lag", &LoadFigures::lag},
};

bool IsLimited(const LatencyLimits& limits) {
  return limits.first_token || limits.between_tokens || limits.end_to_end;
}

bool IsOpen(const LoadPoint& point) { return point.plan.rate > 0; }

bool HasTokens(const std::vector<LoadPoint>& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const LoadPoint& point) { return point.figures.first_token.count > 0; });
}

template <typename... Values>
std::string Print(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

double Setting(const LoadPoint& point) {
  return IsOpen(point) ? point.plan.rate : static_cast<double>(point.plan.concurrency);
}

ChartLine LineOf(const std::vector<LoadPoint>& points, const std::string& name, const char* color,
                 const std::function<double(const LoadPoint&)>& value) {
  ChartLine line{.name = name, .color = color};
  for (const LoadPoint& point : points) line.points.emplace_back(Setting(point), value(point));
  return line;
}

LineChart LatencyChart(const std::vector<LoadPoint>& points, const LatencyLimits& limits) {
  const bool tokens = HasTokens(points);
  const auto of = [tokens](const LoadPoint& point) -> const Percentiles& {
    return tokens ? point.figures.first_token : point.figures.end_to_end;
  };
  LineChart chart;
  chart.y = {tokens ? "time to first token, ms" : "time to answer, ms", true};
  chart.lines = {
      LineOf(points, "99th percentile", kRed, [&](const LoadPoint& p) { return of(p).p99; }),
      LineOf(points, "95th percentile", kOrange, [&](const LoadPoint& p) { return of(p).p95; }),
      LineOf(points, "median", kBlue, [&](const LoadPoint& p) { return of(p).p50; })};
  const std::optional<double> limit = tokens ? limits.first_token : limits.end_to_end;
  if (limit) {
    chart.lines.push_back(LineOf(points, "limit", kGrey, [&](const LoadPoint&) { return *limit; }));
    chart.lines.back().dashed = true;
  }
  return chart;
}

LineChart ThroughputChart(const std::vector<LoadPoint>& points, const LatencyLimits& limits) {
  LineChart chart;
  if (!IsOpen(points.front()) && HasTokens(points) && !IsLimited(limits)) {
    chart.y = {"new tokens/s", false};
    chart.lines = {LineOf(points, "new tokens", kGreen, [](const LoadPoint& point) {
      return point.figures.new_tokens_per_second;
    })};
    return chart;
  }
  chart.y = {"requests/s", false};
  if (IsLimited(limits)) {
    chart.lines.push_back(LineOf(points, "within the limits", kGreen,
                                 [](const LoadPoint& point) { return point.figures.goodput; }));
  }
  chart.lines.push_back(LineOf(points, "answered", kBlue, [](const LoadPoint& point) {
    return point.figures.requests_per_second;
  }));
  if (IsOpen(points.front())) {
    chart.lines.push_back(LineOf(points, "offered", kGrey,
                                 [](const LoadPoint& point) { return point.figures.offered; }));
    chart.lines.back().dashed = true;
  }
  return chart;
}

}  // namespace

std::vector<LoadFigure> FiguresByName(const LoadPoint& point, int64_t tokens) {
  const LoadFigures& f = point.figures;
  std::vector<LoadFigure> figures = {
      {"requests_per_second", f.requests_per_second, "requests/s", f.offered},
      {"output_tokens_per_second", f.new_tokens_per_second, "tokens/s",
       f.offered * static_cast<double>(tokens)},
      {"total_tokens_per_second", f.total_tokens_per_second, "tokens/s"},
      {"goodput", f.goodput, "requests/s", f.offered}};
  for (const Latency& latency : kLatencies) {
    const Percentiles& of = f.*latency.percentiles;
    if (of.count == 0) continue;
    for (const auto& [name, value] : {std::pair("p50", of.p50),
                                      {"p90", of.p90},
                                      {"p95", of.p95},
                                      {"p99", of.p99},
                                      {"max", of.max}}) {
      figures.push_back({std::string(latency.name) + "_" + name, value, "ms"});
    }
  }
  return figures;
}

std::string PointName(const LoadPlan& plan) {
  return plan.rate > 0 ? Print("%g requests/s", plan.rate)
                       : Print("%lld clients", static_cast<long long>(plan.concurrency));
}

std::string PointTable(const LoadPoint& point, const LatencyLimits& limits) {
  const LoadFigures& f = point.figures;
  const auto count = [](int64_t number) { return static_cast<long long>(number); };
  std::string text = PointName(point.plan);
  text +=
      Print(": %lld requests in %.1f s: %lld answered, %lld refused, %lld failed, %lld not sent",
            count(f.requests), f.seconds, count(f.answered), count(f.refused), count(f.failed),
            count(f.not_sent));
  if (point.retried > 0) text += Print("; sent again %lld times", count(point.retried));
  text += "\n";
  for (const auto& [code, number] : f.codes) {
    if (code != "200" && code != "OK") text += Print("  %lld x %s", count(number), code.c_str());
  }
  if (f.answered < f.requests) text += "\n";
  if (f.failed > 0) text += "  the first failure: " + f.failure + "\n";
  text += Print("  %.2f requests/s, %.1f new tokens/s, %.1f tokens/s with those of prompts\n",
                f.requests_per_second, f.new_tokens_per_second, f.total_tokens_per_second);
  if (IsLimited(limits)) {
    text += Print("  within the limits: %lld, %.1f %%, %.2f requests/s\n", count(f.good),
                  100 * f.good_share, f.goodput);
  }
  text += Print("  %-16s %10s %10s %10s %10s %10s\n", "ms", "p50", "p90", "p95", "p99", "max");
  for (const Latency& latency : kLatencies) {
    const Percentiles& of = f.*latency.percentiles;
    if (of.count == 0) continue;
    text += Print("  %-16s %10.2f %10.2f %10.2f %10.2f %10.2f\n", latency.title, of.p50, of.p90,
                  of.p95, of.p99, of.max);
  }
  text += Print("  the client took %.2f of a processor\n", point.client_processors);
  if (f.lag.p99 > kLateMilliseconds) {
    text += "  Warning: the client sent late; part of the latencies is its own.\n";
  }
  return text;
}

nlohmann::json PointCounts(const LoadPoint& point) {
  const LoadFigures& f = point.figures;
  nlohmann::json counts = {{"requests", f.requests},
                           {"answered", f.answered},
                           {"refused", f.refused},
                           {"failed", f.failed},
                           {"not_sent", f.not_sent},
                           {"sent_again", point.retried},
                           {"within_limits", f.good},
                           {"within_limits_share", f.good_share},
                           {"codes", f.codes},
                           {"seconds", f.seconds},
                           {"client_processors", point.client_processors}};
  counts[IsOpen(point) ? "rate" : "concurrency"] = Setting(point);
  return counts;
}

Drawing DrawSweep(const std::vector<LoadPoint>& points, const LatencyLimits& limits,
                  const std::string& title) {
  LineChart latency = LatencyChart(points, limits);
  LineChart throughput = ThroughputChart(points, limits);
  latency.title = title;
  const bool wide = Setting(points.back()) > 8 * Setting(points.front());
  latency.x = throughput.x = {
      IsOpen(points.front()) ? "offered requests/s (Poisson arrivals)" : "clients at once", wide};
  // Against a logarithmic axis, what follows the offer is straight only on another.
  throughput.y.log = wide && IsOpen(points.front());
  return {.width = kWidth,
          .height = 2 * kPanelHeight,
          .svg = SvgAt(0, 0, DrawLineChart(latency, kWidth, kPanelHeight)) +
                 SvgAt(0, kPanelHeight, DrawLineChart(throughput, kWidth, kPanelHeight))};
}

}  // namespace hippodrome
