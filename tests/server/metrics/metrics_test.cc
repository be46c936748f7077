#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "engine/base/status.h"
#include "server/metrics/encoder_metrics.h"

namespace hippodrome::metrics_test {
namespace {

using testing::HasSubstr;

TEST(MetricsTest, RequestsAndFailures) {
  Metrics metrics;
  metrics.CountRequest(Api::kGrpc, "Generate", "m", "ok");
  metrics.CountFailure(FailureReason::kCancelled);
  metrics.CountFailure(FailureReason::kOverloaded);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("hippodrome_requests_total{api=\"grpc\""));
  EXPECT_THAT(text, HasSubstr("hippodrome_request_failures_total{reason=\"cancelled\"} 1"));
  EXPECT_THAT(text, HasSubstr("hippodrome_request_failures_total{reason=\"overloaded\"} 1"));
  EXPECT_THAT(text, HasSubstr("hippodrome_build_info{"));
}

// A rate needs a first value.
TEST(MetricsTest, RefusalsBeginAtZero) {
  Metrics metrics;
  ModelMetrics model(metrics.registry(), "m");
  EncoderMetrics encoder(metrics.registry(), "e");
  const std::string text = metrics.Text();
  for (const std::string name : {"m", "e"}) {
    for (const std::string reason :
         {"queue_full", "client_share", "never_fits", "max_wait", "deadline", "stopping"}) {
      EXPECT_THAT(text, HasSubstr("hippodrome_admission_rejected_total{model=\"" + name +
                                  "\",reason=\"" + reason + "\"} 0"));
    }
  }
  for (const std::string where : {"queue", "prefill", "decode"}) {
    EXPECT_THAT(text,
                HasSubstr("hippodrome_cancelled_total{model=\"m\",where=\"" + where + "\"} 0"));
  }
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

TEST(MetricsTest, CountsOfTheTreeGoOnWithTheNextModel) {
  Metrics metrics;
  {
    ModelMetrics model(metrics.registry(), "m");
    model.SetPrefixes({.nodes = 2, .hits = 3, .misses = 4, .hit_tokens = 50, .bytes = 600});
    model.SetPrefixes({.nodes = 1, .hits = 5, .misses = 4, .hit_tokens = 70, .evictions = 1});
  }
  ModelMetrics next(metrics.registry(), "m");
  next.SetPrefixes({.nodes = 1, .hits = 1, .misses = 2, .hit_tokens = 8, .bytes = 300});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("hippodrome_prefix_hits_total{model=\"m\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("hippodrome_prefix_misses_total{model=\"m\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("hippodrome_prefix_hit_tokens_total{model=\"m\"} 78\n"));
  EXPECT_THAT(text, HasSubstr("hippodrome_prefix_evictions_total{model=\"m\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hippodrome_prefix_states{model=\"m\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hippodrome_prefix_bytes{model=\"m\"} 300\n"));
}

TEST(MetricsTest, CountsOfDraftsGoOnWithTheNextModel) {
  Metrics metrics;
  {
    ModelMetrics model(metrics.registry(), "m");
    model.SetDrafts({.drafted = 7, .accepted = 3});
    model.SetDrafts({.drafted = 9, .accepted = 4});
  }
  ModelMetrics next(metrics.registry(), "m");
  next.SetDrafts({.drafted = 1, .accepted = 1});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("hippodrome_draft_tokens_total{model=\"m\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("hippodrome_draft_tokens_accepted_total{model=\"m\"} 5\n"));
}

TEST(MetricsTest, EncodersCountPaddingApart) {
  Metrics metrics;
  EncoderMetrics encoder(metrics.registry(), "e");
  encoder.EngineStep(std::chrono::milliseconds(3),
                     {.inputs = 2, .tokens = 10, .padded_tokens = 64});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("hippodrome_encoded_tokens_total{model=\"e\"} 10"));
  EXPECT_THAT(text, HasSubstr("hippodrome_padding_tokens_total{model=\"e\"} 54"));
  EXPECT_THAT(text, HasSubstr("hippodrome_batch_tokens_sum{model=\"e\"} 64"));
  EXPECT_THAT(text, HasSubstr("hippodrome_batch_sequences_sum{model=\"e\"} 2"));
  EXPECT_THAT(text,
              HasSubstr("hippodrome_engine_step_seconds_count{model=\"e\",phase=\"encode\"} 1"));
}

// Families that both kinds of models share must be registered once.
TEST(MetricsTest, DecodersAndEncodersShareFamilies) {
  Metrics metrics;
  ModelMetrics model(metrics.registry(), "m");
  EncoderMetrics encoder(metrics.registry(), "e");
  const std::string text = metrics.Text();
  const std::string type = "# TYPE hippodrome_request_duration_seconds ";
  EXPECT_NE(text.find(type), std::string::npos);
  EXPECT_EQ(text.find(type), text.rfind(type));
}

TEST(MetricsTest, LatenciesHaveTwentyThreeBuckets) {
  Metrics metrics;
  ModelMetrics model(metrics.registry(), "m");
  model.FirstToken(Api::kHttp, std::chrono::milliseconds(3), std::chrono::milliseconds(2));
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
  EncoderMetrics encoder(metrics.registry(), "e");
  std::istringstream lines(metrics.Text());
  int families = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# TYPE ", 0) != 0) continue;
    ++families;
    std::istringstream words(line.substr(7));
    std::string name, type;
    words >> name >> type;
    EXPECT_TRUE(name.starts_with("hippodrome_") || name.starts_with("process_")) << name;
    EXPECT_EQ(name.ends_with("_total"), type == "counter") << name;
    if (type == "histogram" && !name.starts_with("hippodrome_batch_")) {
      EXPECT_TRUE(name.ends_with("_seconds") || name.ends_with("_bytes") ||
                  name.ends_with("_tokens"))
          << name;
    }
  }
  EXPECT_GT(families, 10);
}

TEST(MetricsTest, LatenciesHaveTheBucketsThatWereAskedFor) {
  Metrics metrics({0.5, 2});
  ModelMetrics model(metrics.registry(), "m");
  model.Finished(Api::kHttp, std::chrono::seconds(1), std::chrono::milliseconds(900), 4);
  metrics.MeasureHttp("/r", std::chrono::seconds(1), 10, 100);
  const std::string text = metrics.Text();
  EXPECT_THAT(
      text, HasSubstr("hippodrome_http_request_duration_seconds_bucket{route=\"/r\",le=\"2\"} 1"));
  EXPECT_THAT(
      text,
      HasSubstr("hippodrome_time_per_output_token_seconds_sum{api=\"http\",model=\"m\"} 0.3"));
  EXPECT_EQ(text.find("le=\"0.0001\""), std::string::npos);
}

}  // namespace
}  // namespace hippodrome::metrics_test
