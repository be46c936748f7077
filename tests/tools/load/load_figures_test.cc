#include "tools/load/load_figures.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <vector>

namespace hippodrome::load_figures_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const LoadClock::time_point kBegin = LoadClock::time_point(seconds(5));

LoadClock::time_point At(int64_t ms) { return kBegin + milliseconds(ms); }

// Answered: due at `due`, sent at `sent`, then tokens at `tokens`; it ends with the last.
LoadRecord Answer(int64_t due, int64_t sent, const std::vector<int64_t>& tokens) {
  LoadRecord record{.intended = At(due), .sent = At(sent), .end = At(tokens.back())};
  for (const int64_t token : tokens) record.arrivals.push_back({At(token), 1});
  record.prompt_tokens = 10;
  record.new_tokens = static_cast<int64_t>(tokens.size());
  record.outcome = LoadOutcome::kAnswered;
  record.code = "200";
  record.counted = true;
  return record;
}

LoadRecord Ended(LoadOutcome outcome, const std::string& code, int64_t due, int64_t end) {
  return {.intended = At(due),
          .sent = At(due),
          .end = At(end),
          .outcome = outcome,
          .code = code,
          .message = "because",
          .counted = true};
}

LoadRun RunOf(std::vector<LoadRecord> records, const LoadPlan& plan) {
  LoadRun run{.plan = plan, .begin = kBegin};
  for (LoadRecord& record : records) run.records.push_back(std::move(record));
  return run;
}

TEST(PercentilesTest, AreTheNearestRanks) {
  std::vector<double> values(1000);
  std::iota(values.rbegin(), values.rend(), 1);  // 1000 .. 1
  const Percentiles percentiles = PercentilesOf(values);
  EXPECT_EQ(percentiles.count, 1000);
  EXPECT_EQ(percentiles.p50, 500);
  EXPECT_EQ(percentiles.p90, 900);
  EXPECT_EQ(percentiles.p95, 950);
  EXPECT_EQ(percentiles.p99, 990);
  EXPECT_EQ(percentiles.max, 1000);
}

// For every number of values: at least so many percent are at most the percentile, and no smaller
// value has that.
TEST(PercentilesTest, AreExactForAnyNumber) {
  for (int n = 1; n <= 300; ++n) {
    std::vector<double> values(n);
    std::iota(values.begin(), values.end(), 1);
    const Percentiles found = PercentilesOf(values);
    for (const auto& [percent, value] :
         {std::pair(50, found.p50), {90, found.p90}, {95, found.p95}, {99, found.p99}}) {
      EXPECT_GE(value * 100, percent * n) << n;
      EXPECT_LT((value - 1) * 100, percent * n) << n;
    }
  }
  EXPECT_EQ(PercentilesOf({}).count, 0);
  EXPECT_EQ(PercentilesOf({3}).p50, 3);
  EXPECT_EQ(PercentilesOf({3}).p99, 3);
}

TEST(LoadFiguresTest, LatenciesCountFromWhenTheRequestWasDue) {
  // Sent 40 ms late, because the client was busy: that is part of what a user waits.
  const LoadFigures figures =
      FiguresOf(RunOf({Answer(100, 140, {200, 210, 240})}, {.duration = seconds(1)}), {});
  EXPECT_EQ(figures.first_token.p50, 100);
  EXPECT_EQ(figures.end_to_end.p50, 140);
  EXPECT_EQ(figures.lag.max, 40);
  EXPECT_EQ(figures.between_tokens.count, 2);
  EXPECT_EQ(figures.between_tokens.p50, 10);
  EXPECT_EQ(figures.between_tokens.max, 30);
  EXPECT_EQ(figures.per_token.p50, 20);
}

TEST(LoadFiguresTest, TokensThatComeTogetherHaveOneGap) {
  LoadRecord record = Answer(0, 0, {10, 40});
  record.arrivals[1].tokens = 3;
  record.new_tokens = 4;
  const LoadFigures figures = FiguresOf(RunOf({record}, {.duration = seconds(1)}), {});
  EXPECT_EQ(figures.between_tokens.count, 1);
  EXPECT_EQ(figures.between_tokens.p50, 30);
  EXPECT_EQ(figures.per_token.p50, 10);
  EXPECT_EQ(figures.new_tokens_per_second, 4);
}

TEST(LoadFiguresTest, OneTokenHasNoGap) {
  const LoadFigures figures =
      FiguresOf(RunOf({Answer(0, 0, {10})}, {.duration = seconds(1)}), {.between_tokens = 1});
  EXPECT_EQ(figures.between_tokens.count, 0);
  EXPECT_EQ(figures.per_token.count, 0);
  EXPECT_EQ(figures.good, 1);
}

TEST(LoadFiguresTest, RatesCountWhatComesWithinTheWindow) {
  LoadRecord early = Answer(100, 100, {900, 1100, 1200});  // due in the warm-up
  early.counted = false;
  const LoadFigures figures =
      FiguresOf(RunOf({early, Answer(1500, 1500, {2000, 2500}), Answer(2500, 2500, {2900, 3100})},
                      {.warm_up = seconds(1), .duration = seconds(2)}),
                {});
  EXPECT_EQ(figures.seconds, 2);
  EXPECT_EQ(figures.requests, 2);
  EXPECT_EQ(figures.answered, 2);
  EXPECT_EQ(figures.requests_per_second, 1);      // at 1200 and 2500
  EXPECT_EQ(figures.new_tokens_per_second, 2.5);  // 1100, 1200, 2000, 2500, 2900
  // Prompts of those whose first token came at 2000 and 2900.
  EXPECT_EQ(figures.total_tokens_per_second, 12.5);
  EXPECT_EQ(figures.first_token.count, 2);
}

TEST(LoadFiguresTest, ANumberOfRequestsEndsWithItsLastAnswer) {
  const LoadFigures figures =
      FiguresOf(RunOf({Answer(0, 0, {1000}), Answer(0, 0, {4000})}, {.requests = 2}), {});
  EXPECT_NEAR(figures.seconds, 4, 1e-6);
  EXPECT_NEAR(figures.requests_per_second, 0.5, 1e-6);
}

TEST(LoadFiguresTest, CountsHowRequestsEnd) {
  const LoadFigures figures = FiguresOf(
      RunOf({Answer(0, 0, {10}), Ended(LoadOutcome::kRefused, "429", 0, 1),
             Ended(LoadOutcome::kRefused, "429", 0, 1), Ended(LoadOutcome::kFailed, "500", 0, 1),
             Ended(LoadOutcome::kNotSent, "not_sent", 0, 0)},
            {.rate = 5, .duration = seconds(1)}),
      {.first_token = 10});
  EXPECT_EQ(figures.requests, 5);
  EXPECT_EQ(figures.answered, 1);
  EXPECT_EQ(figures.refused, 2);
  EXPECT_EQ(figures.failed, 1);
  EXPECT_EQ(figures.not_sent, 1);
  EXPECT_EQ(figures.codes,
            (std::map<std::string, int64_t>{{"200", 1}, {"429", 2}, {"500", 1}, {"not_sent", 1}}));
  EXPECT_EQ(figures.failure, "because");
  // What is refused or not sent is not within any limit.
  EXPECT_EQ(figures.good_share, 0.2);
  EXPECT_EQ(figures.goodput, 1);
  // Quick refusals make no latency better, and what was not sent was not late.
  EXPECT_EQ(figures.end_to_end.count, 1);
  EXPECT_EQ(figures.lag.count, 4);
}

TEST(LoadFiguresTest, GoodputNeedsEveryLimit) {
  const LoadRun run = RunOf({Answer(0, 0, {10, 20, 30}), Answer(0, 0, {50, 60, 70}),
                             Answer(0, 0, {10, 90, 95}), Answer(0, 0, {10, 20, 200})},
                            {.duration = seconds(1)});
  EXPECT_EQ(FiguresOf(run, {}).good, 4);
  EXPECT_EQ(FiguresOf(run, {.first_token = 10}).good, 3);
  EXPECT_EQ(FiguresOf(run, {.between_tokens = 10}).good, 2);
  EXPECT_EQ(FiguresOf(run, {.end_to_end = 95}).good, 3);
  EXPECT_EQ(FiguresOf(run, {.first_token = 10, .between_tokens = 80, .end_to_end = 100}).good, 2);
}

TEST(LoadFiguresTest, NothingAtAll) {
  const LoadFigures figures = FiguresOf(RunOf({}, {.requests = 1}), {.first_token = 1});
  EXPECT_EQ(figures.requests, 0);
  EXPECT_EQ(figures.goodput, 0);
  EXPECT_EQ(figures.good_share, 0);
}

}  // namespace
}  // namespace hippodrome::load_figures_test
