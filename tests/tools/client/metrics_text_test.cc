#include "tools/client/metrics_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "server/metrics/metrics.h"

namespace hippodrome::metrics_text_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr char kText[] = R"(# HELP a_total Things
# TYPE a_total counter
a_total{model="m",code="200"} 3
a_total{model="m",code="429"} 4 1700000000000
a_total{model="n",code="200",} 1e1
# a comment
b -2.5
# TYPE h histogram
h_bucket{le="0.1"} 1
h_bucket{le="1"} 3
h_bucket{le="+Inf"} 4
h_sum 2
h_count 4
)";

TEST(MetricsTextTest, SumsOverLabels) {
  const MetricsText metrics = MetricsText::Parse(kText).value();
  EXPECT_EQ(metrics.samples().size(), 9);
  EXPECT_EQ(metrics.Sum("a_total"), 17);
  EXPECT_EQ(metrics.Sum("a_total", {{"model", "m"}}), 7);
  EXPECT_EQ(metrics.Sum("a_total", {{"model", "m"}, {"code", "429"}}), 4);
  EXPECT_EQ(metrics.Sum("a_total", {{"model", "x"}}), std::nullopt);
  EXPECT_EQ(metrics.Sum("b"), -2.5);
  EXPECT_EQ(metrics.Sum("c"), std::nullopt);
  EXPECT_EQ(metrics.Values("a_total", "model"), (std::vector<std::string>{"m", "n"}));
  EXPECT_EQ(metrics.Buckets("h"), (std::map<double, double>{{0.1, 1}, {1, 3}, {kInfinity, 4}}));
  EXPECT_TRUE(metrics.Buckets("a_total").empty());
}

TEST(MetricsTextTest, ReadsWhatTheServerWrites) {
  Metrics metrics;
  v1::Model model;
  model.set_name("a \"b\" \\ c\nd");
  metrics.SetModelInfo(model);
  const auto read = MetricsText::Parse(metrics.Text());
  ASSERT_TRUE(read.ok()) << read.status() << metrics.Text();
  EXPECT_EQ(read->Sum("hippodrome_model_info", {{"model", model.name()}}), 1);
}

TEST(MetricsTextTest, ReadsNumbersThatAreNone) {
  const MetricsText metrics = MetricsText::Parse("a NaN\nb +Inf\nc -Inf\n").value();
  EXPECT_TRUE(std::isnan(*metrics.Sum("a")));
  EXPECT_EQ(metrics.Sum("b"), kInfinity);
  EXPECT_EQ(metrics.Sum("c"), -kInfinity);
}

TEST(MetricsTextTest, RefusesOtherTexts) {
  for (const char* line : {"a",
                           "a ",
                           "a b",
                           "1a 2",
                           "a{ 2",
                           "a{b} 2",
                           "a{b=1} 2",
                           "a{b=\"1\" 2",
                           "a{b=\"\\x\"} 2",
                           "a{b=\"1\"c=\"2\"} 2",
                           "a{b=\"1\",b=\"2\"} 2",
                           "a{b=\"1\"}2",
                           "a 1 2 3",
                           "a 1 x",
                           "a 1 1.5",
                           "a 1x",
                           "a  1",
                           "{} 1",
                           "a{b:c=\"1\"} 1",
                           "# TYPE a what",
                           "# TYPE 1",
                           "<html>"}) {
    const absl::Status status = MetricsText::Parse("ok 1\n" + std::string(line)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_NE(std::string(status.message()).find("line 2"), std::string::npos) << line;
  }
  EXPECT_FALSE(MetricsText::Parse("a 1\na 2\n").ok());
  EXPECT_FALSE(MetricsText::Parse("a{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\"} 2\n").ok());
  EXPECT_TRUE(MetricsText::Parse("").ok());
}

TEST(MetricsTextTest, EveryBeginningOfATextIsReadOrRefused) {
  const std::string text = kText;
  for (size_t size = 0; size < text.size(); ++size) (void)MetricsText::Parse(text.substr(0, size));
}

TEST(BucketQuantileTest, InterpolatesWithinABucket) {
  const std::map<double, double> none;
  const std::map<double, double> now = {{1, 10}, {2, 20}, {kInfinity, 20}};
  EXPECT_EQ(BucketQuantile(none, now, 0.25), 0.5);
  EXPECT_EQ(BucketQuantile(none, now, 0.5), 1);
  EXPECT_EQ(BucketQuantile(none, now, 0.75), 1.5);
  EXPECT_EQ(BucketQuantile(none, now, 1), 2);
  const std::map<double, double> beyond = {{1, 0}, {2, 1}, {kInfinity, 100}};
  EXPECT_EQ(BucketQuantile(none, beyond, 0.5), 2);
}

TEST(BucketQuantileTest, SeesOnlyWhatCameBetween) {
  const std::map<double, double> before = {{1, 100}, {2, 100}, {kInfinity, 100}};
  const std::map<double, double> now = {{1, 100}, {2, 110}, {kInfinity, 110}};
  EXPECT_EQ(BucketQuantile(before, now, 0.5), 1.5);
  EXPECT_EQ(BucketQuantile(now, now, 0.5), std::nullopt);
  EXPECT_EQ(BucketQuantile({}, {}, 0.5), std::nullopt);
  // The server has begun anew.
  EXPECT_EQ(BucketQuantile(now, {{1, 4}, {2, 4}, {kInfinity, 4}}, 0.5), 0.5);
}

}  // namespace
}  // namespace hippodrome::metrics_text_test
