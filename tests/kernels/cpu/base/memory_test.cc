#include "kernels/cpu/base/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace hippodrome::memory_test {
namespace {

TEST(MemoryTest, BlocksOfEverySizeAreZeroAndAligned) {
  // Small ones, mappings, and mappings in huge pages, with the borders between them.
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{63}, size_t{1000}, (size_t{128} << 10) - 1, size_t{128} << 10,
        (size_t{2} << 20) - 1, size_t{2} << 20, (size_t{5} << 20) + 17}) {
    std::vector<std::shared_ptr<void>> blocks;
    for (int i = 0; i < 3; ++i) {
      blocks.push_back(AllocateZeroed(bytes));
      auto* block = static_cast<uint8_t*>(blocks.back().get());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << bytes;
      for (size_t at = 0; at < bytes; ++at) {
        ASSERT_EQ(block[at], 0) << "byte " << at << " of " << bytes;
        block[at] = 0xff;  // what is freed dirty must come back clean
      }
    }
  }
}

}  // namespace
}  // namespace hippodrome::memory_test
