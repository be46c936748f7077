#include "tools/plots/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hippodrome {
namespace {

constexpr int kLeft = 70;
constexpr int kRight = 150;  // the legend
constexpr int kTop = 34;
constexpr int kBottom = 48;

// From values to pixels.
struct Scale {
  double least = 0, most = 1;
  bool log = false;
  double from = 0, to = 1;  // pixels of least and most

  bool Has(double value) const { return std::isfinite(value) && (!log || value > 0); }
  double At(double value) const {
    const double part =
        log ? std::log(value / least) / std::log(most / least) : (value - least) / (most - least);
    return from + part * (to - from);
  }
};

Scale ScaleOf(const std::vector<double>& values, bool log) {
  Scale scale{.log = log};
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const double value : values) {
    if (!scale.Has(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (!(most > 0)) most = least = 1;
  // A little more than there is, so that no point lies on the frame.
  scale.least = log ? least / 1.15 : 0;
  scale.most = log ? most * 1.15 : most * 1.05;
  return scale;
}

std::vector<double> AllValues(const LineChart& chart, bool x) {
  std::vector<double> values;
  for (const ChartLine& line : chart.lines) {
    for (const auto& point : line.points) values.push_back(x ? point.first : point.second);
  }
  return values;
}

int Pixel(double position) { return static_cast<int>(std::lround(position)); }

std::string Straight(int x0, int y0, int x1, int y1, const std::string& style) {
  return "<path d=\"M" + std::to_string(x0) + " " + std::to_string(y0) + "L" + std::to_string(x1) +
         " " + std::to_string(y1) + "\" " + style + "/>\n";
}

std::string LineStyle(const ChartLine& line) {
  return "fill=\"none\" stroke-width=\"2\" stroke=\"" + line.color + "\"" +
         (line.dashed ? " stroke-dasharray=\"6 4\"" : "");
}

std::string DrawLine(const ChartLine& line, const Scale& x, const Scale& y) {
  std::string path, dots;
  for (const auto& [at, value] : line.points) {
    if (!x.Has(at) || !y.Has(value)) continue;
    const std::string px = std::to_string(Pixel(x.At(at)));
    const std::string py = std::to_string(Pixel(y.At(value)));
    path += (path.empty() ? "M" : "L") + px + " " + py;
    if (!line.dashed) {
      dots += "<circle cx=\"" + px + "\" cy=\"" + py + "\" r=\"3\" fill=\"" + line.color + "\"/>\n";
    }
  }
  if (path.empty()) return "";
  return "<path d=\"" + path + "\" " + LineStyle(line) + "/>\n" + dots;
}

std::string DrawAxes(const LineChart& chart, const Scale& x, const Scale& y) {
  const std::string grid = "stroke=\"#ddd\"";
  const int left = Pixel(x.from), right = Pixel(x.to), bottom = Pixel(y.from), top = Pixel(y.to);
  std::string svg;
  for (const double mark : AxisMarks(x.least, x.most, x.log)) {
    const int at = Pixel(x.At(mark));
    svg += Straight(at, top, at, bottom, grid) + SvgText(at, bottom + 16, Label(mark), "middle");
  }
  for (const double mark : AxisMarks(y.least, y.most, y.log)) {
    const int at = Pixel(y.At(mark));
    svg += Straight(left, at, right, at, grid) + SvgText(left - 6, at + 4, Label(mark), "end");
  }
  return svg + SvgFrame(left, top, right - left, bottom - top) +
         SvgText((left + right) / 2, bottom + 36, chart.x.title, "middle") +
         SvgVerticalText(16, (top + bottom) / 2, chart.y.title) +
         SvgText((left + right) / 2, 20, chart.title, "middle");
}

}  // namespace

std::vector<double> AxisMarks(double least, double most, bool log) {
  std::vector<double> marks;
  if (!log) {
    const double rough = (most - least) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double times = rough / power;
    const double step = power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
    for (double i = std::ceil(least / step); i * step <= most; ++i) marks.push_back(i * step);
    return marks;
  }
  const bool few = std::log10(most / least) < 3;
  const auto last = static_cast<int>(std::floor(std::log10(most)));
  for (auto power = static_cast<int>(std::floor(std::log10(least))); power <= last; ++power) {
    for (const int times : {1, 2, 5}) {
      const double mark = times * std::pow(10, power);
      if ((times == 1 || few) && mark >= least && mark <= most) marks.push_back(mark);
    }
  }
  return marks;
}

Drawing DrawLineChart(const LineChart& chart, int width, int height) {
  Scale x = ScaleOf(AllValues(chart, true), chart.x.log);
  Scale y = ScaleOf(AllValues(chart, false), chart.y.log);
  x.from = kLeft;
  x.to = width - kRight;
  y.from = height - kBottom;
  y.to = kTop;
  Drawing drawing{.width = width, .height = height, .svg = DrawAxes(chart, x, y)};
  int legend = kTop + 12;
  for (const ChartLine& line : chart.lines) {
    const std::string drawn = DrawLine(line, x, y);
    if (drawn.empty()) continue;
    const int at = width - kRight + 12;
    drawing.svg += drawn + Straight(at, legend - 4, at + 22, legend - 4, LineStyle(line)) +
                   SvgText(at + 28, legend, line.name);
    legend += 18;
  }
  return drawing;
}

}  // namespace hippodrome
