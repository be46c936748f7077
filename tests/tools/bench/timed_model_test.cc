#include "tools/bench/timed_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/status.h"

namespace hippodrome::timed_model_test {
namespace {

using testing::ElementsAre;

// Writes down that it ran.
class LoggingModel final : public TimedModel {
 public:
  LoggingModel(std::string name, std::vector<std::string>& log, absl::Status status = {})
      : name_(std::move(name)), log_(log), status_(std::move(status)) {}
  absl::Status RunRound() override {
    log_.push_back(name_);
    return status_;
  }
  const std::vector<TimedWork>& works() const override { return works_; }

 private:
  std::string name_;
  std::vector<std::string>& log_;
  absl::Status status_;
  std::vector<TimedWork> works_;
};

TEST(TimedModelTest, ModelsRunInTurnsBehindTheCeilings) {
  std::vector<std::string> log;
  LoggingModel a("a", log), b("b", log);
  Machine machine{.name = "test"};
  double rate = 0;
  machine.measure_ceilings = [&](OfRuns) {
    log.emplace_back("ceilings");
    return Ceilings{.threads = 1, .read_bytes = ++rate, .f32_flops = 1 / rate};
  };
  TimedModel* const models[] = {&a, &b};
  const auto ceilings = RunRounds(machine, models, 2);
  ASSERT_TRUE(ceilings.ok());
  EXPECT_EQ(ceilings->read_bytes, 2);
  EXPECT_EQ(ceilings->f32_flops, 1);
  EXPECT_THAT(log, ElementsAre("ceilings", "a", "b", "ceilings", "a", "b"));
}

TEST(TimedModelTest, EachTurnHasItsCeilings) {
  std::vector<std::string> log;
  LoggingModel a("a", log), b("b", log);
  Machine machine{.name = "test"};
  std::vector<double> rates = {5, 1, 2, 9};
  machine.measure_ceilings = [&](OfRuns which) {
    log.emplace_back(which == OfRuns::kMedian ? "median" : "best");
    const double rate = rates.back();
    rates.pop_back();
    return Ceilings{.threads = 1, .read_bytes = rate, .f32_flops = 1 / rate};
  };
  TimedModel* const models[] = {&a, &b};
  const auto ceilings = RunTurns(machine, models, 2);
  ASSERT_TRUE(ceilings.ok());
  EXPECT_EQ(ceilings->read_bytes, 3.5);
  EXPECT_DOUBLE_EQ(ceilings->f32_flops, (1 / 2.0 + 1 / 5.0) / 2);
  EXPECT_THAT(log, ElementsAre("median", "a", "median", "b", "median", "a", "median", "b"));
}

TEST(TimedModelTest, AnErrorEndsTheRounds) {
  std::vector<std::string> log;
  LoggingModel a("a", log, Internal("no")), b("b", log);
  Machine machine{.name = "test", .measure_ceilings = [](OfRuns) { return Ceilings{}; }};
  TimedModel* const models[] = {&a, &b};
  EXPECT_EQ(RunRounds(machine, models, 2).status().message(), "no");
  EXPECT_THAT(log, ElementsAre("a"));
}

}  // namespace
}  // namespace hippodrome::timed_model_test
