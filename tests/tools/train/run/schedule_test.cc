#include "tools/train/run/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace hippodrome::schedule_test {
namespace {

constexpr double kRate = 5e-4;

// The published run of the induction head: 62,800 steps, 40 of 400 epochs of warm-up.
TEST(ScheduleTest, TheCosineRunsOverAllStepsBehindTheWarmUp) {
  const Schedule schedule = {
      .kind = ScheduleKind::kCosine, .warmup = 6280, .warmup_from = 1e-6, .floor = 0.1};
  const auto rate = [&](int64_t step) { return RateAt(schedule, kRate, 62800, step); };
  EXPECT_DOUBLE_EQ(rate(0), 1e-6);
  EXPECT_DOUBLE_EQ(rate(3140), (1e-6 + kRate) / 2);
  const double at_tenth = (1 + std::cos(std::numbers::pi / 10)) / 2;
  EXPECT_DOUBLE_EQ(rate(6280), kRate * (0.1 + 0.9 * at_tenth));  // below the highest already
  EXPECT_NEAR(rate(6279), kRate, kRate / 6000);
  EXPECT_DOUBLE_EQ(rate(31400), kRate * (0.1 + 0.9 / 2));
  EXPECT_DOUBLE_EQ(rate(62800), kRate * 0.1);
  EXPECT_DOUBLE_EQ(rate(80000), kRate * 0.1);
}

TEST(ScheduleTest, TheLineEndsAtTheFloor) {
  const Schedule schedule = {.kind = ScheduleKind::kLinear, .warmup = 10};
  const auto rate = [&](int64_t step) { return RateAt(schedule, kRate, 100, step); };
  EXPECT_DOUBLE_EQ(rate(0), 0);
  EXPECT_DOUBLE_EQ(rate(5), kRate / 2);
  EXPECT_DOUBLE_EQ(rate(10), kRate);
  EXPECT_DOUBLE_EQ(rate(55), kRate / 2);
  EXPECT_DOUBLE_EQ(rate(100), 0);
  EXPECT_DOUBLE_EQ(rate(101), 0);
  const Schedule floored = {.kind = ScheduleKind::kLinear, .warmup = 10, .floor = 0.5};
  EXPECT_DOUBLE_EQ(RateAt(floored, kRate, 100, 55), kRate * 0.75);
}

TEST(ScheduleTest, AConstantStaysAfterTheWarmUp) {
  const Schedule schedule = {.kind = ScheduleKind::kConstant, .warmup = 4};
  EXPECT_DOUBLE_EQ(RateAt(schedule, kRate, 100, 1), kRate / 4);
  EXPECT_DOUBLE_EQ(RateAt(schedule, kRate, 100, 4), kRate);
  EXPECT_DOUBLE_EQ(RateAt(schedule, kRate, 100, 1000), kRate);
}

TEST(ScheduleTest, AWarmUpMayFillTheRun) {
  const Schedule schedule = {.kind = ScheduleKind::kLinear, .warmup = 10};
  EXPECT_DOUBLE_EQ(RateAt(schedule, kRate, 10, 9), kRate * 0.9);
  EXPECT_DOUBLE_EQ(RateAt(schedule, kRate, 10, 10), 0);
}

}  // namespace
}  // namespace hippodrome::schedule_test
