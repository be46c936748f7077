#include "tools/evaluate/positions/length_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hippodrome::length_report_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LengthScore Score(double perplexity) {
  return {.tokens = 128, .bytes = 512, .nll = std::log(perplexity)};
}

PerplexityByLength Example() {
  PerplexityByLength found{.windows = 2};
  found.by_position = {{1, 64, Score(64), 12345, 1 << 20}, {65, 4096, Score(32), 9000, 3 << 20}};
  found.by_context = {{0, Score(40)}, {4000, Score(20)}};
  LengthScore& longest = found.by_context[1].score;
  longest.perplexity = Interval{.standard_error = 1, .low = 18, .high = 22};
  longest.ratio = 1.25;
  longest.ratio_interval = Interval{.standard_error = 0.01, .low = 1.23, .high = 1.27};
  return found;
}

TEST(LengthReportTest, JsonHasWhatThereIs) {
  const auto json = LengthJson(Example());
  EXPECT_EQ(json["windows"], 2);
  const auto& first = json["by_position"][0];
  EXPECT_EQ(first["first"], 1);
  EXPECT_EQ(first["last"], 64);
  EXPECT_NEAR(first["bits_per_byte"], 6 * 128 / 512.0, 1e-12);
  EXPECT_EQ(first["tokens_per_second"], 12345);
  EXPECT_EQ(first["state_bytes"], 1 << 20);
  EXPECT_FALSE(first.contains("intervals"));
  EXPECT_FALSE(first.contains("ratio_to_2k"));
  const auto& longest = json["by_context"][1];
  EXPECT_EQ(longest["context"], 4000);
  EXPECT_NEAR(longest["perplexity"], 20, 1e-9);
  EXPECT_EQ(longest["intervals"]["perplexity"]["low"], 18);
  EXPECT_EQ(longest["intervals"]["ratio_to_2k"]["high"], 1.27);
  EXPECT_EQ(json["ratio_to_2k"].dump(), R"({"by_context":1.25})");
}

TEST(LengthReportTest, TablesAreForPeople) {
  const PerplexityByLength found = Example();
  EXPECT_THAT(PositionRows(found)[2],
              ElementsAre("65-4096", "128", "32.00", "1.250", "", "9000", "3145728"));
  EXPECT_THAT(ContextRows(found)[2], ElementsAre("4000", "128", "20.00 (18.00 to 22.00)", "1.080",
                                                 "1.250 (1.230 to 1.270)"));
  EXPECT_EQ(RatioLine(found),
            "perplexity to that at 2048: 1.250 (1.230 to 1.270) with a context of 4000");
  EXPECT_EQ(RatioLine({.by_position = {{}}, .by_context = {{}}}), "");
}

TEST(LengthReportTest, DrawsEveryLength) {
  const std::string svg = DrawLengths(Example(), "two windows").svg;
  size_t dots = 0;
  for (size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at) ++dots;
  EXPECT_EQ(dots, 2 + 1 + 2 + 2);  // no context is nowhere on a logarithmic axis
  for (const char* text : {"two windows", "by position", "by context", "tokens/s", "MiB"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

}  // namespace
}  // namespace hippodrome::length_report_test
