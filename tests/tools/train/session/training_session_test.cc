#include "tools/train/session/training_session.h"

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

// Standard error is a file here, not a terminal.
TEST(TrainingProgressTest, ExpectsTheRestToTakeAsLongPerStep) {
  testing::internal::CaptureStderr();
  TrainingProgress progress(100, 200);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  progress.Update(150, {2, 100, 0.5});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "training: 75 %, loss 2.000, 100 tokens/s, 50 % of the limit, 0:01 left\n");
}

}  // namespace
}  // namespace hippodrome::training_session_test
