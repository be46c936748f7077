#include "tools/evaluate/positions/length_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "tools/evaluate/interval.h"
#include "tools/plots/line_chart.h"

namespace hippodrome {
namespace {

constexpr int kChartWidth = 720;
constexpr int kPerplexityHeight = 360;
constexpr int kCostHeight = 220;

void AddScore(const LengthScore& score, nlohmann::ordered_json& json) {
  json["tokens"] = score.tokens;
  json["nll"] = score.nll;
  json["perplexity"] = score.Perplexity();
  json["bits_per_byte"] = score.BitsPerByte();
  nlohmann::ordered_json intervals;
  if (score.perplexity) intervals["perplexity"] = ToJson(*score.perplexity);
  if (score.ratio) json["ratio_to_2k"] = *score.ratio;
  if (score.ratio_interval) intervals["ratio_to_2k"] = ToJson(*score.ratio_interval);
  if (!intervals.empty()) json["intervals"] = std::move(intervals);
}

std::string WithInterval(double value, const std::optional<Interval>& interval, int digits) {
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (interval) {
    text += fmt::format(" ({:.{}f} to {:.{}f})", interval->low, digits, interval->high, digits);
  }
  return text;
}

std::string RatioText(const LengthScore& score) {
  return score.ratio ? WithInterval(*score.ratio, score.ratio_interval, 3) : "";
}

std::string PerplexityText(const LengthScore& score) {
  return WithInterval(score.Perplexity(), score.perplexity, 2);
}

ChartAxis TokensAxis() { return {.title = "tokens before the one scored", .log = true}; }

LineChart PerplexityChart(const PerplexityByLength& found, const std::string& title) {
  ChartLine position{.name = "by position", .color = "#1f77b4"};
  ChartLine context{.name = "by context", .color = "#d62728"};
  for (const PositionBucket& bucket : found.by_position) {
    position.points.emplace_back(bucket.last, bucket.score.Perplexity());
  }
  for (const ContextScore& score : found.by_context) {
    context.points.emplace_back(score.context, score.score.Perplexity());
  }
  return {.title = title,
          .x = {.title = "end of the bucket; tokens before the last ones", .log = true},
          .y = {.title = "perplexity"},
          .lines = {std::move(position), std::move(context)}};
}

template <typename Value>
LineChart CostChart(const PerplexityByLength& found, const std::string& title,
                    const std::string& color, const Value& value) {
  ChartLine line{.name = title, .color = color};
  for (const PositionBucket& bucket : found.by_position) {
    line.points.emplace_back(bucket.last, value(bucket));
  }
  return {.x = TokensAxis(), .y = {.title = title}, .lines = {std::move(line)}};
}

}  // namespace

nlohmann::ordered_json LengthJson(const PerplexityByLength& found) {
  nlohmann::ordered_json json = {{"windows", found.windows}};
  for (const PositionBucket& bucket : found.by_position) {
    nlohmann::ordered_json row = {{"first", bucket.first}, {"last", bucket.last}};
    AddScore(bucket.score, row);
    row["tokens_per_second"] = bucket.tokens_per_second;
    row["state_bytes"] = bucket.state_bytes;
    json["by_position"].push_back(std::move(row));
  }
  for (const ContextScore& context : found.by_context) {
    nlohmann::ordered_json row = {{"context", context.context}};
    AddScore(context.score, row);
    json["by_context"].push_back(std::move(row));
  }
  const auto position = found.by_position.back().score.ratio;
  const auto context = found.by_context.back().score.ratio;
  if (position) json["ratio_to_2k"]["by_position"] = *position;
  if (context) json["ratio_to_2k"]["by_context"] = *context;
  return json;
}

std::vector<std::vector<std::string>> PositionRows(const PerplexityByLength& found) {
  std::vector<std::vector<std::string>> rows = {
      {"position", "tokens", "perplexity", "bits/byte", "to 2K", "tokens/s", "state bytes"}};
  for (const PositionBucket& bucket : found.by_position) {
    rows.push_back({fmt::format("{}-{}", bucket.first, bucket.last),
                    std::to_string(bucket.score.tokens), PerplexityText(bucket.score),
                    fmt::format("{:.3f}", bucket.score.BitsPerByte()), RatioText(bucket.score),
                    fmt::format("{:.0f}", bucket.tokens_per_second),
                    std::to_string(bucket.state_bytes)});
  }
  return rows;
}

std::vector<std::vector<std::string>> ContextRows(const PerplexityByLength& found) {
  std::vector<std::vector<std::string>> rows = {
      {"context", "tokens", "perplexity", "bits/byte", "to 2K"}};
  for (const ContextScore& context : found.by_context) {
    rows.push_back({std::to_string(context.context), std::to_string(context.score.tokens),
                    PerplexityText(context.score),
                    fmt::format("{:.3f}", context.score.BitsPerByte()), RatioText(context.score)});
  }
  return rows;
}

std::string RatioLine(const PerplexityByLength& found) {
  const PositionBucket& position = found.by_position.back();
  const ContextScore& context = found.by_context.back();
  std::vector<std::string> parts;
  if (position.score.ratio) {
    parts.push_back(fmt::format("{} at position {}", RatioText(position.score), position.last));
  }
  if (context.score.ratio) {
    parts.push_back(
        fmt::format("{} with a context of {}", RatioText(context.score), context.context));
  }
  if (parts.empty()) return "";
  return fmt::format("perplexity to that at {}: {}", kComparedLength, fmt::join(parts, ", "));
}

Drawing DrawLengths(const PerplexityByLength& found, const std::string& title) {
  const auto speed =
      CostChart(found, "tokens/s", "#2ca02c", [](const auto& b) { return b.tokens_per_second; });
  const auto memory = CostChart(found, "MiB of state", "#9467bd", [](const auto& b) {
    return static_cast<double>(b.state_bytes) / (1 << 20);
  });
  return {
      .width = kChartWidth,
      .height = kPerplexityHeight + 2 * kCostHeight,
      .svg = SvgAt(0, 0,
                   DrawLineChart(PerplexityChart(found, title), kChartWidth, kPerplexityHeight)) +
             SvgAt(0, kPerplexityHeight, DrawLineChart(speed, kChartWidth, kCostHeight)) +
             SvgAt(0, kPerplexityHeight + kCostHeight,
                   DrawLineChart(memory, kChartWidth, kCostHeight))};
}

}  // namespace hippodrome
