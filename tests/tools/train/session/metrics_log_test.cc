#include "tools/train/session/metrics_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::metrics_log_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class MetricsLogTest : public testing::Test {
 protected:
  void Log(int64_t from, std::initializer_list<MetricsLine> lines) {
    auto log = MetricsLog::Open(path_, from);
    ASSERT_TRUE(log.ok()) << log.status();
    for (const MetricsLine& line : lines) ASSERT_TRUE((*log)->Append(line).ok());
  }

  std::vector<int64_t> Steps() {
    std::vector<int64_t> steps;
    const auto lines = ReadMetrics(path_);
    EXPECT_TRUE(lines.ok()) << lines.status();
    for (const MetricsLine& line : *lines) steps.push_back(line.step);
    return steps;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.File("metrics.jsonl");
};

TEST_F(MetricsLogTest, WritesALineOfJsonAtOnce) {
  auto log = MetricsLog::Open(path_, -1);
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE((*log)->Append({10, 40960, 1.5, {{"loss", 5.25}, {"rate", 1e-4}}}).ok());
  EXPECT_EQ(FileContent(path_),
            "{\"step\":10,\"tokens\":40960,\"seconds\":1.5,\"loss\":5.25,\"rate\":0.0001}\n");
}

TEST_F(MetricsLogTest, WhatIsNotFiniteIsNull) {
  Log(-1, {{1, 2, 3, {{"loss", std::numeric_limits<double>::quiet_NaN()}, {"rate", 1}}}});
  EXPECT_THAT(FileContent(path_), testing::HasSubstr("\"loss\":null"));
  const auto lines = ReadMetrics(path_).value();
  EXPECT_FALSE(lines[0].values.contains("loss"));
  EXPECT_EQ(lines[0].values.at("rate"), 1);
  EXPECT_EQ(lines[0].seconds, 3);
}

TEST_F(MetricsLogTest, ResumingTakesOutWhatCameAfterTheCheckpoint) {
  Log(-1, {{10}, {20}, {20, 0, 0, {{"valid_loss", 2}}}, {30}});
  Log(20, {{21}});
  EXPECT_THAT(Steps(), testing::ElementsAre(10, 20, 20, 21));
  EXPECT_THAT(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(MetricsLogTest, ALineThatWasCutOffGoes) {
  Log(-1, {{10}, {20}});
  const std::string whole = FileContent(path_);
  directory_.Write("metrics.jsonl", whole + "{\"step\": 21, \"los");
  EXPECT_THAT(Steps(), testing::ElementsAre(10, 20));
  Log(100, {{22}});
  EXPECT_THAT(Steps(), testing::ElementsAre(10, 20, 22));
}

TEST_F(MetricsLogTest, BeginsAnew) {
  Log(-1, {{0}, {10}});
  Log(-1, {{5}});
  EXPECT_THAT(Steps(), testing::ElementsAre(5));
}

TEST_F(MetricsLogTest, ErrorsNameTheFileAndTheLine) {
  directory_.Write("metrics.jsonl", "{\"step\": 1}\n{\"step\": -1}\n");
  EXPECT_EQ(Message(ReadMetrics(path_).status()),
            path_ + " line 2: step is -1, expected an integer in [0, 9223372036854775807]");
  EXPECT_THAT(Message(MetricsLog::Open("/none/metrics.jsonl", -1).status()),
              testing::StartsWith("/none/metrics.jsonl: "));
}

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
}  // namespace hippodrome::metrics_log_test
