// What is found, and by which build: results in several orders of threads and the emulator's rules
// in every build, accesses out of bounds with AddressSanitizer, races with ThreadSanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/cuda_on_cpu/sanitizers.h"

namespace cuda_on_cpu {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

#ifdef CUDA_ON_CPU_ASAN
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif
#ifdef CUDA_ON_CPU_TSAN
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

struct Outcome {
  int exit_code;
  std::string text;
};

Outcome RunProgram(const std::string& fault) {
  const std::string command = std::string(CUDA_ON_CPU_SEEDED_FAULTS) + " " + fault + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> part;
  while (const size_t n = fread(part.data(), 1, part.size(), pipe))
    outcome.text.append(part.data(), n);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

// Seen by its result, and as a race in `function`.
void ExpectRace(const std::string& fault, const std::string& function) {
  const Outcome outcome = RunProgram(fault);
  EXPECT_NE(outcome.exit_code, 0) << outcome.text;
  if (kThreadSanitizer) {
    EXPECT_THAT(outcome.text,
                AllOf(HasSubstr("data race"), HasSubstr("hippodrome::cuda::" + function)));
  } else {
    EXPECT_THAT(outcome.text, HasSubstr("a result is wrong"));
  }
}

void ExpectBadAccess(const std::string& fault, const std::string& report) {
  if (!kAddressSanitizer) GTEST_SKIP() << "only AddressSanitizer sees accesses out of bounds";
  const Outcome outcome = RunProgram(fault);
  EXPECT_NE(outcome.exit_code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, ContainsRegex(report));
}

TEST(SeededFaultsTest, TheCorrectKernelPasses) {
  const Outcome outcome = RunProgram("none");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.text, "");
}

TEST(SeededFaultsTest, ReadingBeforeABarrier) { ExpectRace("no_barrier", "Transform"); }
TEST(SeededFaultsTest, OverwritingBeforeABarrier) {
  ExpectRace("no_barrier_in_place", "Transform");
}
TEST(SeededFaultsTest, ReadingBeforeABarrierOfTheWarp) { ExpectRace("no_warp_barrier", "FftRows"); }

// These give right results here.
void ExpectHiddenRace(const std::string& fault, const std::string& function) {
  if (!kThreadSanitizer) GTEST_SKIP() << "only ThreadSanitizer sees races that give right results";
  ExpectRace(fault, function);
}

TEST(SeededFaultsTest, BlocksThatCollide) { ExpectHiddenRace("blocks_collide", "FftRows"); }
TEST(SeededFaultsTest, AShuffleIsNoBarrier) { ExpectHiddenRace("shuffle_for_barrier", "FftRows"); }

TEST(SeededFaultsTest, ReadingBeforeACopyArrives) {
  EXPECT_THAT(RunProgram("no_wait").text, HasSubstr("a result is wrong"));
}

TEST(SeededFaultsTest, DivergentBarrier) {
  const Outcome outcome = RunProgram("divergent_barrier");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("threads wait at a barrier of the block"));
}

TEST(SeededFaultsTest, ReadingBeyondDeviceMemory) {
  ExpectBadAccess("read_beyond", "heap-buffer-overflow");
}
TEST(SeededFaultsTest, WritingBeyondASharedArray) {
  ExpectBadAccess("shared_beyond", "global-buffer-overflow|out of bounds");
}
TEST(SeededFaultsTest, WritingBeyondDynamicSharedMemory) {
  ExpectBadAccess("dynamic_beyond", "heap-buffer-overflow");
}
TEST(SeededFaultsTest, ReadingDeviceMemoryOnTheHost) {
  ExpectBadAccess("host_reads_device_memory", "use-after-poison");
}

}  // namespace
}  // namespace cuda_on_cpu
