#include "tools/bench/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace hippodrome::bench_report_test {
namespace {

using testing::HasSubstr;

constexpr Ceilings kCeilings = {
    .threads = 1, .read_bytes = 1000, .f32_flops = 100, .bf16_flops = 200, .int8_flops = 400};

// Arithmetic takes 2 s of f32, memory 1 s.
TimedWork Work(const std::vector<double>& seconds) {
  return {.name = "work",
          .length = 5,
          .batch = 4,
          .tokens = 20,
          .cost = {.flops = 200, .bytes = 1000},
          .seconds = seconds};
}

CommandLine Line() {
  char name[] = "work";
  char* argv[] = {name};
  return *CommandLine::Parse(1, argv, {.name = "bench work", .options = {JsonOption()}});
}

TEST(BenchReportTest, RatesAreOfTheFastestRoundOrOfTheMedianOne) {
  const BenchResult best = BestRate(Work({10, 4, 5}), kCeilings);
  EXPECT_EQ(best.value, 5);
  EXPECT_EQ(best.limit, 10);
  EXPECT_EQ(best.fraction, 0.5);
  EXPECT_EQ(best.bytes_per_token, 50);
  const BenchResult median = MedianRate(Work({10, 4, 5}), kCeilings);
  EXPECT_EQ(median.value, 4);
  EXPECT_EQ(median.limit, 10);
  EXPECT_EQ(median.fraction, 0.4);
}

TEST(BenchReportTest, TheMeanIsAllTokensByAllTime) {
  const BenchResult result = BestRate(Work({10, 4, 6}), kCeilings);
  ASSERT_TRUE(result.spread.has_value());
  EXPECT_EQ(result.spread->least, 2);
  EXPECT_EQ(result.spread->mean, 3);
  EXPECT_EQ(result.spread->most, 5);
  EXPECT_FALSE(BestRate(Work({10}), kCeilings).spread.has_value());
}

TEST(BenchReportTest, TheJsonHasWhatIsKnown) {
  BenchReport report{.results = {MedianRate(Work({10, 4, 6}), kCeilings), {.name = "plain"}}};
  report.results[0].to_bf16 = 0.5;
  const nlohmann::json json = ReportJson(Line(), "machine", report);
  EXPECT_EQ(json["machine"], "machine");
  const nlohmann::json& full = json["results"][0];
  EXPECT_EQ(full["bytes_per_token"], 50);
  EXPECT_EQ(full["least"], 2);
  EXPECT_EQ(full["mean"], 3);
  EXPECT_EQ(full["most"], 5);
  EXPECT_EQ(full["to_bf16"], 0.5);
  for (const char* name : {"bytes_per_token", "least", "mean", "most", "to_bf16", "rate"}) {
    EXPECT_FALSE(json["results"][1].contains(name)) << name;
  }
}

TEST(BenchReportTest, PrintsALineForEachResultOrATableInTheirPlace) {
  const BenchReport report{.ceilings = kCeilings, .results = {BestRate(Work({10, 4}), kCeilings)}};
  testing::internal::CaptureStdout();
  ASSERT_TRUE(WriteReport(Line(), "machine", report).ok());
  const std::string lines = testing::internal::GetCapturedStdout();
  EXPECT_THAT(lines, HasSubstr("machine\nceilings"));
  EXPECT_THAT(lines, HasSubstr("mean"));
  EXPECT_THAT(lines, HasSubstr("0.000 MB/token\n"));
  testing::internal::CaptureStdout();
  ASSERT_TRUE(WriteReport(Line(), "machine", report, "the table\n").ok());
  const std::string table = testing::internal::GetCapturedStdout();
  EXPECT_THAT(table, HasSubstr("machine\nceilings"));
  EXPECT_TRUE(table.ends_with("GOP/s\nthe table\n")) << table;
}

}  // namespace
}  // namespace hippodrome::bench_report_test
