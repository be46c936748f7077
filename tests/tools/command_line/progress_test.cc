#include "tools/command_line/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace hippodrome::progress_test {
namespace {

// Standard error is a file here, not a terminal.
TEST(ProgressTest, SaysNothingOfWhatIsSoonDone) {
  testing::internal::CaptureStderr();
  Progress progress("work");
  for (int done = 0; done <= 100; ++done) progress.Update(done, 100);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ProgressTest, PrintsALineWhenATenthMoreIsDoneAndASecondHasPassed) {
  testing::internal::CaptureStderr();
  Progress progress("work");
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  progress.Update(5, 100);  // no tenth yet
  progress.Update(37, 100);
  progress.Update(58, 100);  // too soon after the last line
  progress.Update(1, 0);     // nothing to do is no progress
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "work: 37 %\n");
}

TEST(ProgressTest, SaysTheNoteBehindThePercentage) {
  testing::internal::CaptureStderr();
  Progress progress("work");
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  progress.Update(5, 100, "slow");  // no tenth yet, nor half a minute
  progress.Update(37, 100, "fast");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "work: 37 %, fast\n");
}

}  // namespace
}  // namespace hippodrome::progress_test
