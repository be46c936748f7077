#include "tools/train/session/metrics_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/base/durable_files.h"
#include "engine/base/json_object.h"
#include "engine/base/status.h"
#include "tools/command_line/text_file.h"
#include "tools/plots/svg.h"

namespace hippodrome {
namespace {

// ---- The log -----------------------------------------------------------------------------------

std::string ToText(const MetricsLine& line) {
  nlohmann::ordered_json json = {
      {"step", line.step}, {"tokens", line.tokens}, {"seconds", line.seconds}};
  for (const auto& [name, value] : line.values) json[name] = value;
  return json.dump() + "\n";
}

absl::StatusOr<MetricsLine> ParseLine(std::string_view text) {
  HIPPODROME_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(std::string(text)));
  ObjectReader reader(json, "");
  MetricsLine line;
  line.step = reader.Integer("step", {0, INT64_MAX});
  line.tokens = reader.Integer("tokens", {0, INT64_MAX}, 0);
  HIPPODROME_RETURN_IF_ERROR(reader.status());
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number() || name == "step" || name == "tokens") continue;
    (name == "seconds" ? line.seconds : line.values[name]) = value.get<double>();
  }
  return line;
}

// Splits the next line, without its end, off `rest`; false when none is whole.
bool TakeLine(std::string_view& rest, std::string_view& line) {
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return false;
  line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return true;
}

// The lines of `text` up to `step`.
std::string Keep(std::string_view text, int64_t step) {
  std::string kept;
  std::string_view line;
  while (TakeLine(text, line)) {
    const absl::StatusOr<MetricsLine> parsed = ParseLine(line);
    if (parsed.ok() && parsed->step <= step) kept.append(line).push_back('\n');
  }
  return kept;
}

absl::Status TakeLinesOut(const std::string& path, int64_t step) {
  if (!std::filesystem::exists(path)) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  const std::string kept = Keep(text, step);
  return kept == text ? absl::OkStatus() : WriteFileDurably(path, kept);
}

// ---- The picture -------------------------------------------------------------------------------

constexpr int kWidth = 720;
constexpr int kHeight = 400;
constexpr int kLeft = 64;  // numbers and axis title
constexpr int kTop = 36;   // key
constexpr int kRight = 24;
constexpr int kBelow = 48;
constexpr size_t kMostPoints = 2000;  // of a line: more than there are pixels
constexpr size_t kWindows = 50;
constexpr const char* kTraining = "#1f6fb4";
constexpr const char* kValidation = "#c8401e";

struct Point {
  double step = 0;
  double loss = 0;
};
using Points = std::vector<Point>;

Points Select(const std::vector<MetricsLine>& lines, const char* name) {
  Points points;
  for (const MetricsLine& line : lines) {
    const auto value = line.values.find(name);
    if (value == line.values.end()) continue;
    points.push_back({static_cast<double>(line.step), value->second});
  }
  return points;
}

// Every point becomes the mean of those around it.
Points Smooth(const Points& points) {
  const size_t reach = points.size() / kWindows / 2;
  std::vector<double> sums = {0};
  for (const Point& point : points) sums.push_back(sums.back() + point.loss);
  Points smooth = points;
  for (size_t i = 0; i < points.size(); ++i) {
    // As far on either side, so that the ends do not drag behind.
    const size_t both = std::min({reach, i, points.size() - 1 - i});
    const double sum = sums[i + both + 1] - sums[i - both];
    smooth[i].loss = sum / static_cast<double>(2 * both + 1);
  }
  return smooth;
}

Points Thin(const Points& points) {
  if (points.size() <= kMostPoints) return points;
  Points thin;
  for (size_t i = 0; i < kMostPoints; ++i) {
    thin.push_back(points[i * (points.size() - 1) / (kMostPoints - 1)]);
  }
  return thin;
}

// The rectangle of data that is shown.
struct Axes {
  double last_step = 1;
  double least = 0;
  double most = 1;
  double tick = 0.2;  // of the loss

  double X(double step) const { return kLeft + step / last_step * kWidth; }
  double Y(double loss) const {
    return kTop + (most - std::clamp(loss, least, most)) / (most - least) * kHeight;
  }
};

// 1, 2 or 5 times a power of ten, so that `range` has at most eight.
double Tick(double range) {
  const double rough = range / 8;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

Axes Fit(const Points& smooth, const Points& valid) {
  Axes axes;
  Points all = smooth;
  all.insert(all.end(), valid.begin(), valid.end());
  if (all.empty()) return axes;
  const auto by_loss = [](const Point& a, const Point& b) { return a.loss < b.loss; };
  const auto [least, most] = std::minmax_element(all.begin(), all.end(), by_loss);
  const double range = most->loss - least->loss;
  axes.tick = Tick(range > 0 ? range : 1);
  axes.least = std::floor(least->loss / axes.tick) * axes.tick;
  axes.most = (std::floor(most->loss / axes.tick) + 1) * axes.tick;
  for (const Point& point : all) axes.last_step = std::max(axes.last_step, point.step);
  return axes;
}

std::string Line(const Points& points, const Axes& axes, const char* color, double width,
                 double opacity) {
  std::string places;
  for (const Point& point : Thin(points)) {
    places += fmt::format("{:.1f},{:.1f} ", axes.X(point.step), axes.Y(point.loss));
  }
  return fmt::format(
      "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" opacity=\"{}\" points=\"{}\"/>\n",
      color, width, opacity, places);
}

std::string Dots(const Points& points, const Axes& axes) {
  std::string svg;
  for (const Point& point : Thin(points)) {
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                       axes.X(point.step), axes.Y(point.loss), kValidation);
  }
  return svg;
}

std::string DrawAxes(const Axes& axes) {
  std::string svg = SvgFrame(kLeft, kTop, kWidth, kHeight);
  const auto ticks = static_cast<int>(std::lround((axes.most - axes.least) / axes.tick));
  for (int i = 0; i <= ticks; ++i) {
    const double loss = axes.least + i * axes.tick;
    const int y = static_cast<int>(std::lround(axes.Y(loss)));
    svg += SvgText(kLeft - 6, y + 4, Label(loss), "end");
    if (i > 0 && i < ticks) svg += SvgRect(kLeft, y, kWidth, 1, "#ddd");
  }
  const double tick = std::max(1.0, Tick(axes.last_step));
  for (double step = 0; step <= axes.last_step; step += tick) {
    const int x = static_cast<int>(std::lround(axes.X(step)));
    svg += SvgText(x, kTop + kHeight + 16, fmt::format("{:.0f}", step), "middle");
  }
  svg += SvgText(kLeft + kWidth / 2, kTop + kHeight + 38, "step", "middle");
  return svg + SvgVerticalText(16, kTop + kHeight / 2, "loss");
}

std::string Key(bool valid) {
  std::string svg = SvgRect(kLeft, 14, 16, 3, kTraining) + SvgText(kLeft + 22, 20, "training");
  if (valid) {
    svg += SvgRect(kLeft + 98, 12, 6, 6, kValidation);
    svg += SvgText(kLeft + 110, 20, "validation");
  }
  return svg;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Open(const std::string& path,
                                                             int64_t step) {
  HIPPODROME_RETURN_IF_ERROR(TakeLinesOut(path, step));
  FILE* file = std::fopen(path.c_str(), "abe");
  if (file == nullptr) return Internal(path + ": " + std::strerror(errno));
  return std::unique_ptr<MetricsLog>(new MetricsLog(path, file));
}

MetricsLog::~MetricsLog() { std::fclose(file_); }

absl::Status MetricsLog::Append(const MetricsLine& line) {
  const std::string text = ToText(line);
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0;
  return written ? absl::OkStatus() : Internal(path_ + ": " + std::strerror(errno));
}

absl::StatusOr<std::vector<MetricsLine>> ReadMetrics(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  std::vector<MetricsLine> lines;
  std::string_view rest = text;
  std::string_view line;
  while (TakeLine(rest, line)) {
    absl::StatusOr<MetricsLine> parsed = ParseLine(line);
    if (!parsed.ok()) {
      return InvalidArgument(
          fmt::format("{} line {}: {}", path, lines.size() + 1, Message(parsed.status())));
    }
    lines.push_back(*std::move(parsed));
  }
  return lines;
}

std::string DrawLossCurve(const std::vector<MetricsLine>& lines) {
  const Points raw = Select(lines, "loss");
  const Points valid = Select(lines, "valid_loss");
  const Points smooth = Smooth(raw);
  const Axes axes = Fit(smooth, valid);
  const std::string svg = DrawAxes(axes) + Line(raw, axes, kTraining, 1, 0.25) +
                          Line(smooth, axes, kTraining, 2, 1) + Dots(valid, axes) +
                          Key(!valid.empty());
  return SvgFile({.width = kLeft + kWidth + kRight, .height = kTop + kHeight + kBelow, .svg = svg});
}

}  // namespace hippodrome
