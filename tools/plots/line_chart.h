// A chart of lines.
#ifndef HIPPODROME_TOOLS_PLOTS_LINE_CHART_H_
#define HIPPODROME_TOOLS_PLOTS_LINE_CHART_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/plots/svg.h"

namespace hippodrome {

struct ChartLine {
  std::string name;   // for the legend
  std::string color;  // "#1f77b4"
  bool dashed = false;
  std::vector<std::pair<double, double>> points;  // (x, y), x ascending
};

struct ChartAxis {
  std::string title;  // with its unit
  bool log = false;   // then values that are not positive are left out
};

struct LineChart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartLine> lines;
};

// Marks on an axis from `least` to `most`, at 1, 2 or 5 times a power of ten, all within: about
// five, on a logarithmic axis those of each power of ten, or 1, 2, 5 of each where they are few.
// REQUIRES: least < most; on a logarithmic axis 0 < least.
std::vector<double> AxisMarks(double least, double most, bool log);

// A linear axis begins at 0. Lines without points are left out.
Drawing DrawLineChart(const LineChart& chart, int width, int height);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_PLOTS_LINE_CHART_H_
