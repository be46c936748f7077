#include "tools/top/top_screen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

namespace hippodrome {
namespace {

enum class Color : uint8_t { kNone, kBold, kDim, kGreen, kYellow, kRed, kCyan };

const char* Sequence(Color color) {
  switch (color) {
    case Color::kBold:
      return "\x1b[1m";
    case Color::kDim:
      return "\x1b[2m";
    case Color::kGreen:
      return "\x1b[32m";
    case Color::kYellow:
      return "\x1b[33m";
    case Color::kRed:
      return "\x1b[31m";
    case Color::kCyan:
      return "\x1b[36m";
    case Color::kNone:
      break;
  }
  return "";
}

// Columns of text in which only sparklines are not ASCII: they have one for each character.
int Width(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Cut(const std::string& text, int columns) {
  size_t end = 0;
  for (int used = 0; end < text.size(); ++end) {
    if ((text[end] & 0xc0) != 0x80 && ++used > columns) break;
  }
  return text.substr(0, end);
}

// A line that knows how much room is left.
class Line {
 public:
  explicit Line(const ScreenStyle& style) : style_(style) {}

  Line& Add(const std::string& text, Color color = Color::kNone) {
    const std::string shown = Cut(text, style_.columns - used_);
    used_ += Width(shown);
    const bool colored = style_.color && color != Color::kNone && !shown.empty();
    text_ += colored ? Sequence(color) + shown + "\x1b[0m" : shown;
    return *this;
  }
  // Right-aligned in `width` columns.
  Line& AddRight(const std::string& text, int width, Color color = Color::kNone) {
    return Add(std::string(std::max(0, width - Width(text)), ' ') + text, color);
  }
  Line& AddLeft(const std::string& text, int width, Color color = Color::kNone) {
    return Add(Cut(text, width) + std::string(std::max(0, width - Width(text)), ' '), color);
  }
  int left() const { return style_.columns - used_; }
  const std::string& text() const { return text_; }

 private:
  const ScreenStyle& style_;
  std::string text_;
  int used_ = 0;
};

constexpr int kNameWidth = 18;
constexpr int kNumberWidth = 10;

Line Header(const TopFrame& frame, const ScreenStyle& style) {
  Line line(style);
  line.Add("hippodrome ", Color::kBold).Add(Printable(frame.figures.version) + "  ");
  line.Add(Printable(frame.address), Color::kCyan).Add("  " + frame.clock);
  if (frame.totals) line.Add("  totals", Color::kYellow);
  if (frame.paused) line.Add("  paused", Color::kYellow);
  return line;
}

Line Throughput(const TopFrame& frame, const ScreenStyle& style, const std::string& name,
                const std::optional<double>& value, const History& history) {
  Line line(style);
  line.AddLeft(name, kNameWidth).AddRight(ShortNumber(value), kNumberWidth, Color::kGreen);
  line.Add(frame.totals ? "    " : " /s ");
  // As many as there are columns: a reading a second makes them the last minute, and more.
  const int width = std::min<int>(120, line.left());
  return line.Add(Sparkline(history, std::max(0, width), style.unicode), Color::kCyan);
}

Line LatencyRow(const ScreenStyle& style, const std::string& name, const LatencyFigures& latency) {
  Line line(style);
  line.AddLeft(name, kNameWidth).AddRight(ShortDuration(latency.p50), kNumberWidth);
  return line.AddRight(ShortDuration(latency.p99), kNumberWidth);
}

Line Load(const TopFrame& frame, const ScreenStyle& style) {
  const TopFigures& f = frame.figures;
  Line line(style);
  const bool waiting = f.queued.value_or(0) > 0;
  line.Add("queue ").Add(ShortNumber(f.queued), waiting ? Color::kYellow : Color::kGreen);
  line.Add("  running ").Add(ShortNumber(f.running), Color::kGreen);
  line.Add("  connections http ").Add(ShortNumber(f.http_connections), Color::kGreen);
  line.Add(" grpc ").Add(ShortNumber(f.grpc_connections), Color::kGreen);
  if (f.resident_bytes) line.Add("  resident " + ShortBytes(f.resident_bytes));
  return line;
}

Line Failures(const TopFrame& frame, const ScreenStyle& style) {
  Line line(style);
  line.Add(frame.totals ? "failures  " : "failures/s  ");
  if (frame.figures.failures.empty()) return line.Add("none", Color::kGreen);
  for (const auto& [reason, count] : frame.figures.failures) {
    line.Add(Printable(reason) + " ").Add(ShortNumber(count) + "  ", Color::kRed);
  }
  return line;
}

struct Column {
  const char* title;
  int width;
  std::string (*text)(const ModelFigures& model);
};

std::string OfAll(const std::optional<double>& part, const std::optional<double>& all) {
  return all ? ShortNumber(part) + "/" + ShortNumber(all) : "-";
}

// Those that matter the most first: a narrow screen cuts the others off.
constexpr Column kColumns[] = {
    {"tokens", 8, [](const ModelFigures& m) { return ShortNumber(m.new_tokens); }},
    {"prompt", 8, [](const ModelFigures& m) { return ShortNumber(m.prompt_tokens); }},
    {"queue", 7, [](const ModelFigures& m) { return ShortNumber(m.queued); }},
    {"run", 6, [](const ModelFigures& m) { return ShortNumber(m.running); }},
    {"slots", 8, [](const ModelFigures& m) { return OfAll(m.slots, m.all_slots); }},
    {"state", 10, [](const ModelFigures& m) { return ShortBytes(m.bytes); }},
    {"of", 10, [](const ModelFigures& m) { return ShortBytes(m.all_bytes); }},
    {"ttft p50", 10, [](const ModelFigures& m) { return ShortDuration(m.first_token.p50); }},
    {"p99", 10, [](const ModelFigures& m) { return ShortDuration(m.first_token.p99); }},
    {"itl p50", 10, [](const ModelFigures& m) { return ShortDuration(m.between_tokens.p50); }},
    {"p99", 10, [](const ModelFigures& m) { return ShortDuration(m.between_tokens.p99); }},
    {"e2e p50", 10, [](const ModelFigures& m) { return ShortDuration(m.request.p50); }},
    {"p99", 10, [](const ModelFigures& m) { return ShortDuration(m.request.p99); }},
};

Line ModelTitles(const ScreenStyle& style) {
  Line line(style);
  line.AddLeft("model", kNameWidth, Color::kBold);
  for (const Column& column : kColumns) {
    if (line.left() < column.width) break;
    line.AddRight(column.title, column.width, Color::kBold);
  }
  return line;
}

Line ModelRow(const ModelFigures& model, const ScreenStyle& style) {
  Line line(style);
  line.AddLeft(Printable(model.name), kNameWidth);
  for (const Column& column : kColumns) {
    if (line.left() < column.width) break;
    line.AddRight(column.text(model), column.width);
  }
  return line;
}

void AddModels(const TopFrame& frame, const ScreenStyle& style, size_t room,
               std::vector<std::string>& lines) {
  const std::vector<ModelFigures>& models = frame.figures.models;
  if (models.empty() || room < 2) return;
  lines.push_back(ModelTitles(style).text());
  const bool all = models.size() < room;
  const size_t shown = all ? models.size() : room - 2;
  for (size_t i = 0; i < shown; ++i) lines.push_back(ModelRow(models[i], style).text());
  if (!all) {
    Line more(style);
    more.Add(std::to_string(models.size() - shown) + " more models", Color::kDim);
    lines.push_back(more.text());
  }
}

std::vector<std::string> Overview(const TopFrame& frame, const ScreenStyle& style) {
  const TopFigures& f = frame.figures;
  std::vector<std::string> lines = {
      "", Throughput(frame, style, "new tokens", f.new_tokens, frame.new_tokens).text(),
      Throughput(frame, style, "prompt tokens", f.prompt_tokens, frame.prompt_tokens).text(),
      Throughput(frame, style, "requests", f.requests, frame.requests).text(), ""};
  Line titles(style);
  titles.AddLeft("latency", kNameWidth, Color::kBold).AddRight("p50", kNumberWidth, Color::kBold);
  lines.push_back(titles.AddRight("p99", kNumberWidth, Color::kBold).text());
  lines.push_back(LatencyRow(style, "first token", f.first_token).text());
  lines.push_back(LatencyRow(style, "between tokens", f.between_tokens).text());
  lines.push_back(LatencyRow(style, "request", f.request).text());
  lines.insert(lines.end(), {"", Load(frame, style).text(), Failures(frame, style).text(), ""});
  return lines;
}

std::string Fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

// Three digits at least, with a unit of a thousand or 1024 times the last.
std::string Scaled(double value, double step, std::initializer_list<const char*> units) {
  const auto* unit = units.begin();
  for (; value >= step && unit + 1 != units.end(); ++unit) value /= step;
  return Fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0) + *unit;
}

}  // namespace

std::vector<std::string> Render(const TopFrame& frame, const ScreenStyle& style) {
  const auto rows = static_cast<size_t>(std::max(0, style.rows));
  const size_t keys = style.keys && rows > 1 ? 1 : 0;
  std::vector<std::string> lines = {Header(frame, style).text()};
  if (!frame.problem.empty()) {
    Line problem(style);
    lines.push_back(problem.Add(Printable(frame.problem), Color::kRed).text());
  }
  if (frame.known) {
    const auto overview = Overview(frame, style);
    lines.insert(lines.end(), overview.begin(), overview.end());
    const size_t used = lines.size() + keys;
    AddModels(frame, style, rows > used ? rows - used : 0, lines);
  }
  if (lines.size() > rows - keys) lines.resize(rows - keys);
  if (keys == 1) {
    lines.resize(rows - 1);
    Line line(style);
    line.Add("q quit  p pause  r rates or totals", Color::kDim);
    lines.push_back(line.text());
  }
  return lines;
}

std::string Sparkline(const History& history, int width, bool unicode) {
  constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<const char*, 8> kAscii = {".", ":", "-", "=", "+", "*", "#", "@"};
  const size_t count = std::min(history.size(), static_cast<size_t>(std::max(0, width)));
  const auto begin = history.end() - static_cast<std::ptrdiff_t>(count);
  double most = 0;
  for (auto value = begin; value != history.end(); ++value)
    most = std::max(most, value->value_or(0));
  std::string line;
  for (auto value = begin; value != history.end(); ++value) {
    if (!value->has_value()) {
      line += " ";
      continue;
    }
    const double part = most > 0 ? std::clamp(**value / most, 0.0, 1.0) : 0;
    line += (unicode ? kBars : kAscii)[static_cast<size_t>(std::lround(part * 7))];
  }
  return line;
}

std::string ShortNumber(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return "-";
  if (*value < 1000) {
    return Fixed(*value, *value == std::floor(*value) || *value >= 100 ? 0 : *value < 10 ? 2 : 1);
  }
  return Scaled(*value, 1000, {"", "k", "M", "G", "T"});
}

std::string ShortDuration(const std::optional<double>& seconds) {
  if (!seconds || !std::isfinite(*seconds)) return "-";
  if (*seconds < 1e-3) return Fixed(*seconds * 1e6, 0) + " us";
  if (*seconds < 1) return Scaled(*seconds * 1e3, 1e9, {" ms"});
  return Scaled(*seconds, 1e9, {" s"});
}

std::string ShortBytes(const std::optional<double>& bytes) {
  if (!bytes || !std::isfinite(*bytes)) return "-";
  return Scaled(*bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB"});
}

std::string Printable(const std::string& text) {
  std::string shown;
  for (const char c : text) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown;
}

}  // namespace hippodrome
