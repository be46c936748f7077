#include "tools/train/session/loss_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hippodrome::loss_curve_test {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<MetricsLine> Lines(int64_t steps) {
  std::vector<MetricsLine> lines;
  for (int64_t step = 1; step <= steps; ++step) {
    const double noise = step % 2 == 0 ? 0.1 : -0.1;
    lines.push_back({.step = step, .values = {{"loss", 2 + noise}, {"rate", 1}}});
    if (step % 100 == 0) lines.push_back({.step = step, .values = {{"valid_loss", 2.5}}});
  }
  return lines;
}

TEST(LossCurveTest, DrawsTrainingTwiceAndValidationAsPoints) {
  const std::string svg = DrawLossCurve(Lines(1000));
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  EXPECT_EQ(Count(svg, "<polyline"), 2u);
  EXPECT_EQ(Count(svg, "<circle"), 10u);
  EXPECT_THAT(svg, HasSubstr(">training</text>"));
  EXPECT_THAT(svg, HasSubstr(">validation</text>"));
  EXPECT_THAT(svg, HasSubstr(">1000</text>"));
  EXPECT_THAT(svg, HasSubstr(">2.5</text>"));
}

// Noise of 0.1 does not widen the axis beyond what the means and the points need.
TEST(LossCurveTest, TheSmoothLineRulesTheAxis) {
  const std::string svg = DrawLossCurve(Lines(1000));
  EXPECT_THAT(svg, HasSubstr(">1.9</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">1.7</text>")));
  EXPECT_THAT(svg, Not(HasSubstr(">2.7</text>")));
}

TEST(LossCurveTest, LongRunsAreThinned) {
  const std::string svg = DrawLossCurve(Lines(100000));
  EXPECT_LT(svg.size(), 200000u);  // of two lines with 100,000 points each, 2.4 million
}

TEST(LossCurveTest, AnyRunHasAPicture) {
  EXPECT_THAT(DrawLossCurve({}), Not(HasSubstr("nan")));
  EXPECT_THAT(DrawLossCurve(Lines(1)), Not(HasSubstr("nan")));
  EXPECT_THAT(DrawLossCurve({{.step = 5, .values = {{"valid_loss", 0}}}}), Not(HasSubstr("nan")));
  const std::vector<MetricsLine> diverged = {{.step = 1, .values = {{"loss", 1}}},
                                             {.step = 2, .values = {{"loss", 1e300}}}};
  EXPECT_THAT(DrawLossCurve(diverged), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace hippodrome::loss_curve_test
