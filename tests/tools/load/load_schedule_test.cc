#include "tools/load/load_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <vector>

namespace hippodrome::load_schedule_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Time = LoadSchedule::Time;

const Time kBegin = Time(seconds(1000));

double Seconds(Time time) { return std::chrono::duration<double>(time - kBegin).count(); }

std::vector<double> Arrivals(LoadPlan plan) {
  plan.max_outstanding = 1 << 30;
  LoadSchedule schedule(plan, kBegin);
  std::vector<double> arrivals;
  while (const auto due = schedule.Due(kBegin)) {
    const LoadSchedule::Launch launch = schedule.Take(*due);
    EXPECT_EQ(launch.intended, *due);
    arrivals.push_back(Seconds(launch.intended));
  }
  return arrivals;
}

TEST(LoadScheduleTest, ArrivalsAreAPoissonProcess) {
  const std::vector<double> arrivals = Arrivals({.rate = 50, .requests = 100000, .seed = 7});
  ASSERT_EQ(arrivals.size(), 100000);
  // Gaps are exponential: mean and standard deviation 1/50, and 1/e of them longer than that.
  double sum = 0, squares = 0, longer = 0, before = 0;
  for (const double arrival : arrivals) {
    const double gap = arrival - before;
    before = arrival;
    sum += gap;
    squares += gap * gap;
    longer += gap > 1.0 / 50 ? 1 : 0;
  }
  const double n = static_cast<double>(arrivals.size());
  EXPECT_NEAR(sum / n, 0.02, 4 * 0.02 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n - sum * sum / n / n), 0.02, 0.0004);
  EXPECT_NEAR(longer / n, std::exp(-1), 4 * std::sqrt(0.25 / n));
  // The numbers of arrivals in stretches of a second have mean and variance 50.
  std::map<int, int> stretches;
  for (const double arrival : arrivals) ++stretches[static_cast<int>(arrival)];
  stretches.erase(stretches.rbegin()->first);  // not a whole one
  double mean = 0, variance = 0;
  for (const auto& stretch : stretches) mean += stretch.second;
  mean /= static_cast<double>(stretches.size());
  for (const auto& stretch : stretches)
    variance += (stretch.second - mean) * (stretch.second - mean);
  variance /= static_cast<double>(stretches.size());
  EXPECT_NEAR(mean, 50, 1);
  EXPECT_NEAR(variance, 50, 5);
}

TEST(LoadScheduleTest, TheSeedDecides) {
  const LoadPlan plan{.rate = 5, .requests = 10, .seed = 1};
  LoadPlan other = plan;
  other.seed = 2;
  EXPECT_EQ(Arrivals(plan), Arrivals(plan));
  EXPECT_NE(Arrivals(plan), Arrivals(other));
}

TEST(LoadScheduleTest, EndsWithItsDuration) {
  const std::vector<double> arrivals =
      Arrivals({.rate = 100, .warm_up = seconds(2), .duration = seconds(3)});
  EXPECT_NEAR(static_cast<double>(arrivals.size()), 500, 100);
  EXPECT_LT(arrivals.back(), 5);
  EXPECT_GT(arrivals.back(), 4.5);
}

TEST(LoadScheduleTest, TheWarmUpIsNotCounted) {
  LoadSchedule schedule({.rate = 100, .warm_up = seconds(1), .requests = 50}, kBegin);
  int counted = 0, warm_up = 0;
  while (const auto due = schedule.Due(kBegin)) {
    const auto launch = schedule.Take(*due);
    EXPECT_EQ(launch.counted, Seconds(launch.intended) >= 1);
    ++(launch.counted ? counted : warm_up);
    schedule.Ended(launch.index, *due, LoadOutcome::kAnswered, 0);
  }
  EXPECT_EQ(counted, 50);
  EXPECT_GT(warm_up, 50);
  EXPECT_TRUE(schedule.Over(kBegin));
}

// A server in virtual time: `serve` gives the time that a request takes. Returns what was launched.
struct Served {
  LoadSchedule::Launch launch;
  double at = 0;
};
std::vector<Served> Simulate(LoadSchedule& schedule,
                             const std::function<milliseconds(int64_t)>& serve,
                             int64_t* most_outstanding = nullptr) {
  std::vector<Served> served;
  std::multimap<Time, int64_t> ends;
  Time now = kBegin;
  for (;;) {
    const auto due = schedule.Due(now);
    if (!due && ends.empty()) return served;
    if (!due || (!ends.empty() && ends.begin()->first <= *due)) {
      now = ends.begin()->first;
      schedule.Ended(ends.begin()->second, now, LoadOutcome::kAnswered, 0);
      ends.erase(ends.begin());
      continue;
    }
    now = std::max(now, *due);
    const auto launch = schedule.Take(now);
    served.push_back({launch, Seconds(now)});
    if (launch.sent) ends.emplace(now + serve(launch.index), launch.index);
    if (most_outstanding != nullptr) {
      *most_outstanding = std::max(*most_outstanding, schedule.outstanding());
    }
  }
}

TEST(LoadScheduleTest, AnOpenLoopDoesNotWait) {
  // A server that stalls for good answers nothing, and all arrives as if it did.
  const LoadPlan plan{.rate = 10, .duration = seconds(20)};
  LoadSchedule quick(plan, kBegin), stalled(plan, kBegin);
  const auto one = Simulate(quick, [](int64_t) { return milliseconds(1); });
  const auto other = Simulate(stalled, [](int64_t) { return milliseconds(100000); });
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].launch.intended, other[i].launch.intended);
    EXPECT_TRUE(other[i].launch.sent);
  }
}

TEST(LoadScheduleTest, WhatIsTooMuchIsNotSentAndCounts) {
  LoadSchedule schedule({.rate = 10, .max_outstanding = 5, .requests = 100}, kBegin);
  int64_t most = 0;
  const auto served = Simulate(schedule, [](int64_t) { return milliseconds(100000); }, &most);
  ASSERT_EQ(served.size(), 100);
  EXPECT_EQ(most, 5);
  for (size_t i = 0; i < served.size(); ++i) EXPECT_EQ(served[i].launch.sent, i < 5);
}

TEST(LoadScheduleTest, AClosedLoopAsksWhenItHasItsAnswer) {
  LoadSchedule schedule({.concurrency = 3, .duration = seconds(1)}, kBegin);
  int64_t most = 0;
  const auto served = Simulate(schedule, [](int64_t) { return milliseconds(100); }, &most);
  EXPECT_EQ(most, 3);
  ASSERT_EQ(served.size(), 30);
  for (size_t i = 0; i < served.size(); ++i) {
    EXPECT_NEAR(served[i].at, static_cast<double>(i / 3) * 0.1, 1e-9);
    EXPECT_NEAR(Seconds(served[i].launch.intended), served[i].at, 1e-9);
  }
}

TEST(LoadScheduleTest, AClosedLoopOfSoManyRequests) {
  LoadSchedule schedule({.concurrency = 8, .requests = 20}, kBegin);
  EXPECT_EQ(Simulate(schedule, [](int64_t) { return milliseconds(10); }).size(), 20);
  EXPECT_TRUE(schedule.Over(kBegin));
}

TEST(LoadScheduleTest, RefusedRequestsComeAgainWhenTheServerSays) {
  LoadSchedule schedule({.concurrency = 1, .requests = 1, .retries = 2}, kBegin);
  const auto first = schedule.Take(kBegin);
  EXPECT_TRUE(schedule.Ended(first.index, kBegin, LoadOutcome::kRefused, 3));
  EXPECT_EQ(schedule.Due(kBegin), kBegin + seconds(3));
  EXPECT_EQ(schedule.outstanding(), 1);
  const auto second = schedule.Take(kBegin + seconds(3));
  EXPECT_TRUE(second.again);
  EXPECT_EQ(second.index, first.index);
  EXPECT_EQ(second.intended, kBegin);
  EXPECT_TRUE(schedule.Ended(0, kBegin + seconds(3), LoadOutcome::kRefused, 0));
  EXPECT_EQ(schedule.Due(kBegin), kBegin + seconds(3));
  schedule.Take(kBegin + seconds(3));
  EXPECT_FALSE(schedule.Ended(0, kBegin + seconds(4), LoadOutcome::kRefused, 1));
  EXPECT_EQ(schedule.retried(), 2);
  EXPECT_TRUE(schedule.Over(kBegin + seconds(4)));
}

TEST(LoadScheduleTest, OnlyRefusedRequestsComeAgain) {
  LoadSchedule schedule({.concurrency = 1, .requests = 1, .retries = 2}, kBegin);
  schedule.Take(kBegin);
  EXPECT_FALSE(schedule.Ended(0, kBegin, LoadOutcome::kFailed, 3));
  EXPECT_EQ(schedule.retried(), 0);
}

TEST(LoadScheduleTest, AClientThatFailedPauses) {
  LoadSchedule schedule({.concurrency = 1, .duration = seconds(1)}, kBegin);
  schedule.Take(kBegin);
  schedule.Ended(0, kBegin, LoadOutcome::kFailed, 0);
  EXPECT_EQ(schedule.Due(kBegin), kBegin + milliseconds(100));
  schedule.Take(kBegin + milliseconds(100));
  schedule.Ended(1, kBegin + milliseconds(100), LoadOutcome::kRefused, 0);
  EXPECT_EQ(schedule.Due(kBegin + milliseconds(100)), kBegin + milliseconds(100));
}

}  // namespace
}  // namespace hippodrome::load_schedule_test
