#include "tools/plots/line_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace hippodrome::line_chart_test {
namespace {

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(AxisMarksTest, LinearMarksAreRound) {
  EXPECT_EQ(AxisMarks(0, 10, false), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(AxisMarks(0, 5200, false).size(), 3);  // 0, 2000, 4000
  const std::vector<double> small = AxisMarks(0, 0.007, false);
  EXPECT_NEAR(small[1], 0.002, 1e-12);
}

TEST(AxisMarksTest, LogarithmicMarks) {
  EXPECT_EQ(AxisMarks(0.9, 21, true), (std::vector<double>{1, 2, 5, 10, 20}));
  const std::vector<double> wide = AxisMarks(0.5, 20000, true);
  ASSERT_EQ(wide.size(), 5);
  EXPECT_EQ(wide.back(), 10000);
  EXPECT_EQ(AxisMarks(3, 4, true).size(), 0);
}

TEST(LineChartTest, DrawsLinesAndDots) {
  const LineChart chart{
      .title = "t",
      .x = {"x"},
      .y = {"y", true},
      .lines = {{.name = "one", .color = "#111111", .points = {{1, 1}, {2, 10}}},
                {.name = "limit", .color = "#222222", .dashed = true, .points = {{1, 5}, {2, 5}}}}};
  const Drawing drawing = DrawLineChart(chart, 400, 300);
  EXPECT_EQ(drawing.width, 400);
  EXPECT_EQ(Count(drawing.svg, "<circle"), 2);
  EXPECT_EQ(Count(drawing.svg, "stroke=\"#111111\""), 2);  // the line and the legend
  EXPECT_EQ(Count(drawing.svg, "stroke-dasharray"), 2);
  EXPECT_NE(drawing.svg.find(">one<"), std::string::npos);
}

TEST(LineChartTest, LabelsAreShortButWholeNumbersAreWhole) {
  EXPECT_EQ(Label(20000), "20000");
  EXPECT_EQ(Label(65536), "65536");
  EXPECT_EQ(Label(2e6), "2e+06");
  EXPECT_EQ(Label(0.123456), "0.1235");
  EXPECT_EQ(Label(0), "0");
}

TEST(LineChartTest, LeavesOutWhatCannotBeDrawn) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const LineChart chart{
      .y = {"y", true},
      .lines = {{.name = "none", .color = "#111111", .points = {{1, 0}}},
                {.name = "one", .color = "#222222", .points = {{1, 0}, {2, nan}, {3, 7}}}}};
  const Drawing drawing = DrawLineChart(chart, 400, 300);
  EXPECT_EQ(Count(drawing.svg, "<circle"), 1);
  EXPECT_EQ(Count(drawing.svg, ">none<"), 0);
  EXPECT_EQ(Count(DrawLineChart({}, 400, 300).svg, "<circle"), 0);
}

}  // namespace
}  // namespace hippodrome::line_chart_test
