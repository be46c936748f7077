#include "tools/top/top_figures.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

namespace hippodrome::top_figures_test {
namespace {

using std::chrono::seconds;

MetricsText Read(const std::string& text) { return MetricsText::Parse(text).value(); }

std::string Reading(int tokens, int answers, int refused, int fast, int slow) {
  const auto text = [](int number) { return std::to_string(number) + "\n"; };
  return "hippodrome_build_info{version=\"1.2.3\"} 1\n"
         "hippodrome_requests_queued{model=\"b\"} 0\n"
         "hippodrome_requests_queued{model=\"a\"} 3\n"
         "hippodrome_requests_running{model=\"a\",phase=\"prefill\"} 1\n"
         "hippodrome_requests_running{model=\"a\",phase=\"decode\"} 4\n"
         "hippodrome_state_slots{model=\"a\",state=\"active\"} 5\n"
         "hippodrome_state_slots{model=\"a\",state=\"free\"} 59\n"
         "hippodrome_state_bytes{model=\"a\",kind=\"recurrent\"} 100\n"
         "hippodrome_state_bytes{model=\"a\",kind=\"attention_kv\"} 20\n"
         "hippodrome_state_budget_bytes{model=\"a\"} 1000\n"
         "hippodrome_encoded_tokens_total{model=\"b\"} 7\n"
         "hippodrome_generated_tokens_total{model=\"a\"} " +
         text(tokens) +
         "hippodrome_requests_total{api=\"http\",code=\"200\",model=\"a\",route=\"/x\"} " +
         text(answers) +
         "hippodrome_requests_total{api=\"grpc\",code=\"ok\",model=\"a\",route=\"/y\"} " +
         text(answers) +
         "hippodrome_requests_total{api=\"http\",code=\"429\",model=\"a\",route=\"/x\"} 50\n"
         "hippodrome_request_failures_total{reason=\"overloaded\"} " +
         text(refused) +
         "hippodrome_request_failures_total{reason=\"internal\"} 2\n"
         "hippodrome_time_to_first_token_seconds_bucket{api=\"http\",model=\"a\",le=\"0.1\"} " +
         text(fast) +
         "hippodrome_time_to_first_token_seconds_bucket{api=\"http\",model=\"a\",le=\"0.2\"} " +
         text(fast + slow) +
         "hippodrome_time_to_first_token_seconds_bucket{api=\"http\",model=\"a\",le=\"+Inf\"} " +
         text(fast + slow);
}

TEST(TopFiguresTest, RatesComeOfTwoReadings) {
  const MetricsText before = Read(Reading(1000, 10, 1, 100, 0));
  const MetricsText now = Read(Reading(1500, 30, 5, 100, 10));
  const TopFigures figures = FiguresBetween(&before, now, seconds(2), false);
  EXPECT_EQ(figures.version, "1.2.3");
  EXPECT_EQ(figures.seconds, 2);
  EXPECT_EQ(figures.new_tokens, 250);
  EXPECT_EQ(figures.requests, 20);  // over both protocols
  EXPECT_EQ(figures.failures, (std::map<std::string, double>{{"overloaded", 2}}));
  EXPECT_EQ(figures.queued, 3);
  EXPECT_EQ(figures.running, 5);
  EXPECT_EQ(figures.prompt_tokens, std::nullopt);  // the server does not say
  // Only what came in between.
  EXPECT_NEAR(*figures.first_token.p50, 0.15, 1e-9);
  EXPECT_EQ(figures.between_tokens.p50, std::nullopt);
}

TEST(TopFiguresTest, EachModelHasItsOwn) {
  const MetricsText before = Read(Reading(1000, 10, 1, 100, 0));
  const MetricsText now = Read(Reading(1500, 30, 5, 100, 10));
  const TopFigures figures = FiguresBetween(&before, now, seconds(2), false);
  ASSERT_EQ(figures.models.size(), 2);
  const ModelFigures& a = figures.models[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.new_tokens, 250);
  EXPECT_EQ(a.slots, 5);
  EXPECT_EQ(a.all_slots, 64);
  EXPECT_EQ(a.bytes, 120);
  EXPECT_EQ(a.all_bytes, 1000);
  EXPECT_NEAR(*a.first_token.p99, 0.199, 1e-9);
  const ModelFigures& b = figures.models[1];
  EXPECT_EQ(b.new_tokens, 0);  // those that it read
  EXPECT_EQ(b.all_slots, std::nullopt);
}

TEST(TopFiguresTest, TotalsNeedNoEarlierReading) {
  const MetricsText now = Read(Reading(1500, 30, 5, 100, 0));
  const TopFigures totals = FiguresBetween(nullptr, now, seconds(0), true);
  EXPECT_EQ(totals.new_tokens, 1500);
  EXPECT_EQ(totals.requests, 60);
  EXPECT_EQ(totals.failures, (std::map<std::string, double>{{"internal", 2}, {"overloaded", 5}}));
  EXPECT_NEAR(*totals.first_token.p50, 0.05, 1e-9);
  const TopFigures rates = FiguresBetween(nullptr, now, seconds(0), false);
  EXPECT_EQ(rates.new_tokens, std::nullopt);
  EXPECT_EQ(rates.first_token.p50, std::nullopt);
  EXPECT_EQ(rates.queued, 3);
}

TEST(TopFiguresTest, AServerThatBeganAnewCountsFromZero) {
  const MetricsText before = Read(Reading(1000, 10, 1, 100, 0));
  const MetricsText now = Read(Reading(40, 2, 0, 10, 0));
  const TopFigures figures = FiguresBetween(&before, now, seconds(2), false);
  EXPECT_EQ(figures.new_tokens, 20);
  EXPECT_NEAR(*figures.first_token.p50, 0.05, 1e-9);
}

TEST(TopFiguresTest, JsonHasNullForWhatIsNotKnown) {
  const MetricsText now = Read(Reading(1, 1, 1, 1, 1));
  const nlohmann::json json = ToJson(FiguresBetween(nullptr, now, seconds(0), false));
  EXPECT_TRUE(json["new_tokens"].is_null());
  EXPECT_TRUE(json["time_to_first_token"]["p99"].is_null());
  EXPECT_EQ(json["queued"], 3);
  EXPECT_EQ(json["models"][0]["state_budget_bytes"], 1000);
}

}  // namespace
}  // namespace hippodrome::top_figures_test
