#include "tools/train/session/training_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace hippodrome::training_session_test {
namespace {

TEST(TrainingProgressTest, DescribesThePace) {
  EXPECT_EQ(DescribePace({3.14159, 12345, 0.449}, 3723),
            "loss 3.142, 12.3 k tokens/s, 45 % of the limit, 1:02:03 left");
  EXPECT_EQ(DescribePace({0.5, 950, 0}, 65), "loss 0.500, 950 tokens/s, 1:05 left");
  EXPECT_EQ(DescribePace({0.5, 1.2e6, 0}, -1), "loss 0.500, 1.20 M tokens/s");
}

TEST(TrainingProgressTest, ExpectsTheRestToTakeAsLongPerStep) {
  EXPECT_EQ(SecondsLeft(100, 150, 200, 30), 30);
  EXPECT_EQ(SecondsLeft(0, 50, 200, 5), 15);
  EXPECT_LT(SecondsLeft(100, 100, 200, 5), 0);
}

// Standard error is a file here, not a terminal, and a line comes after a second at the earliest.
TEST(TrainingProgressTest, SaysHowFarItIs) {
  testing::internal::CaptureStderr();
  TrainingProgress progress(100, 200);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  progress.Update(150, {2, 100, 0.5});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("training: 75 %, loss 2.000, 100 tokens/s, 50 % of the limit, "
                                    "[0-9:]+ left\n"));
}

}  // namespace
}  // namespace hippodrome::training_session_test
