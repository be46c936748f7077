#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "engine/status.h"

namespace hippodrome {
namespace {

using testing::HasSubstr;

TEST(MetricsTest, RequestsAndFailures) {
  Metrics metrics;
  metrics.CountRequest(Api::kGrpc, "Generate", "m", "ok");
  metrics.CountFailure(absl::CancelledError());
  metrics.CountFailure(absl::ResourceExhaustedError(""));
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("hippodrome_requests_total{api=\"grpc\""));
  EXPECT_THAT(text, HasSubstr("hippodrome_request_failures_total{reason=\"cancelled\"} 1"));
  EXPECT_THAT(text, HasSubstr("hippodrome_request_failures_total{reason=\"overloaded\"} 1"));
  EXPECT_THAT(text, HasSubstr("hippodrome_build_info{version=\""));
}

TEST(MetricsTest, StateIsSplitByKind) {
  Metrics metrics;
  ModelMetrics model(metrics.registry(), "m");
  model.SetState({2, 3, 230}, {4, 64, 1040}, 100);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("hippodrome_state_budget_bytes{model=\"m\"} 1040"));
  EXPECT_THAT(text, HasSubstr("kind=\"recurrent\",model=\"m\"} 200"));
  EXPECT_THAT(text, HasSubstr("kind=\"attention_kv\",model=\"m\"} 30"));
  EXPECT_THAT(text, HasSubstr("model=\"m\",state=\"free\"} 2"));
}

TEST(MetricsTest, LatenciesHaveTwentyThreeBuckets) {
  Metrics metrics;
  ModelMetrics model(metrics.registry(), "m");
  model.FirstToken(Api::kHttp, std::chrono::milliseconds(3));
  std::istringstream lines(metrics.Text());
  int buckets = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool bucket = line.rfind("hippodrome_time_to_first_token_seconds_bucket", 0) == 0;
    if (bucket && line.find("api=\"http\"") != std::string::npos) ++buckets;
  }
  EXPECT_EQ(buckets, 24);  // with +Inf
}

// Every family has help and a type, and its name follows the conventions.
TEST(MetricsTest, ExpositionFollowsTheConventions) {
  Metrics metrics;
  ModelMetrics model(metrics.registry(), "m");
  std::istringstream lines(metrics.Text());
  int families = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# TYPE ", 0) != 0) continue;
    ++families;
    std::istringstream words(line.substr(7));
    std::string name, type;
    words >> name >> type;
    EXPECT_EQ(name.rfind("hippodrome_", 0), 0u) << name;
    EXPECT_EQ(name.ends_with("_total"), type == "counter") << name;
    if (type == "histogram" && name != "hippodrome_batch_sequences") {
      EXPECT_TRUE(name.ends_with("_seconds")) << name;
    }
  }
  EXPECT_GT(families, 10);
}

}  // namespace
}  // namespace hippodrome
