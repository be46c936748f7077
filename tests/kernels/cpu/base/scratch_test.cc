#include "kernels/cpu/base/scratch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace hippodrome::scratch_test {
namespace {

TEST(ScratchTest, IsKeptAndGrows) {
  void* small = ThreadScratch(ScratchUse::kLinearSums, 100);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small) % 64, 0u);
  EXPECT_EQ(ThreadScratch(ScratchUse::kLinearSums, 50), small);
  std::memset(ThreadScratch(ScratchUse::kLinearSums, 100000), 1, 100000);
}

TEST(ScratchTest, IsApartByUseAndByThread) {
  void* mine = ThreadScratch(ScratchUse::kLinearSums, 100);
  EXPECT_NE(ThreadScratch(ScratchUse::kLinearInput, 100), mine);
  void* theirs = nullptr;
  std::thread([&] { theirs = ThreadScratch(ScratchUse::kLinearSums, 100); }).join();
  EXPECT_NE(theirs, mine);
}

TEST(ScratchTest, NothingIsSomething) {
  EXPECT_NE(ThreadScratch(ScratchUse::kAttentionRotation, size_t{0}), nullptr);
}

}  // namespace
}  // namespace hippodrome::scratch_test
