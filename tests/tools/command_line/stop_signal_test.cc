#include "tools/command_line/stop_signal.h"

#include <gtest/gtest.h>

namespace hippodrome::stop_signal_test {
namespace {

TEST(StopSignalTest, NotesTheFirstSignal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const StopSignal stop;
    EXPECT_FALSE(stop.Received());
    std::raise(signal);
    EXPECT_TRUE(stop.Received());
  }
}

TEST(StopSignalTest, TheSecondSignalEndsTheProcess) {
  const auto raise_twice = [](int first, int second) {
    const StopSignal stop;
    std::raise(first);
    std::raise(second);
  };
  EXPECT_EXIT(raise_twice(SIGINT, SIGINT), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(raise_twice(SIGINT, SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignalTest, SignalsDoAgainWhatTheyDidBefore) {
  static volatile std::sig_atomic_t own = 0;
  std::signal(SIGTERM, [](int) { own = 1; });
  {
    const StopSignal stop;
  }
  std::raise(SIGTERM);
  EXPECT_EQ(own, 1);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace
}  // namespace hippodrome::stop_signal_test
