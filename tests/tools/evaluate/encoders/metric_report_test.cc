#include "tools/evaluate/encoders/metric_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hippodrome::metric_report_test {
namespace {

using testing::ElementsAre;

const std::vector<double> kValues = {1, 0, 0, 1, 0};

TEST(MetricReportTest, HasValuesAndIntervals) {
  const Metric metrics[] = {{"mean", MeanOfExamples(kValues)},
                            {"one", [](std::span<const size_t>) { return 1.0; }}};
  const nlohmann::json report = MetricReport(5, metrics);
  EXPECT_EQ(report["mean"], 0.4);
  EXPECT_EQ(report["intervals"]["mean"], ToJson(Bootstrap(5, MeanOfExamples(kValues))));
  EXPECT_EQ(report["intervals"]["one"]["standard_error"], 0);
}

TEST(MetricReportTest, NoExamplesHaveNoIntervals) {
  const std::vector<double> none;
  const Metric metrics[] = {{"mean", MeanOfExamples(none)}};
  EXPECT_EQ(MetricReport(0, metrics), nlohmann::json({{"mean", 0.0}}));
  EXPECT_EQ(MetricText(MetricReport(0, metrics), "mean"), "0.000");
}

TEST(MetricReportTest, TextHasTheInterval) {
  const nlohmann::json report = {{"f1", 0.25},
                                 {"intervals", {{"f1", {{"low", 0.125}, {"high", 0.5}}}}}};
  EXPECT_EQ(MetricText(report, "f1"), "0.250 (0.125 to 0.500)");
}

TEST(MetricReportTest, TablesHaveColumns) {
  testing::internal::CaptureStderr();
  PrintTable({{"task", "value"}, {"a", "1"}, {"longer", ""}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "task    value\na       1\nlonger\n");
}

TEST(MetricReportTest, TakesValuesAtPlaces) {
  const size_t places[] = {3, 3, 1};
  EXPECT_THAT(ValuesAt(places, std::vector<int>{5, 6, 7, 8}), ElementsAre(8, 8, 6));
}

}  // namespace
}  // namespace hippodrome::metric_report_test
