#include "kernels/cpu/base/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace hippodrome::cpu::memory_test {
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

// Bytes at `block` that are resident.
size_t Resident(const void* block, size_t bytes) {
  constexpr size_t kPage = 4096;
  std::vector<unsigned char> pages(bytes / kPage);
  EXPECT_EQ(mincore(const_cast<void*>(block), bytes, pages.data()), 0);
  size_t resident = 0;
  for (const unsigned char page : pages) resident += page & 1 ? kPage : 0;
  return resident;
}

TEST(MemoryTest, BlocksGoBackToTheSystemBesideOthers) {
  constexpr size_t kBytes = size_t{3} << 20;
  std::vector<std::shared_ptr<void>> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(AllocateZeroed(kBytes));
    std::memset(blocks.back().get(), i + 1, kBytes);
  }
  const void* const middle = blocks[1].get();
  EXPECT_EQ(Resident(middle, kBytes), kBytes);
  blocks[1].reset();
  EXPECT_EQ(Resident(middle, kBytes), 0u);
  for (const size_t kept : {0, 2}) {
    const auto* bytes = static_cast<const uint8_t*>(blocks[kept].get());
    EXPECT_TRUE(std::all_of(bytes, bytes + kBytes, [&](uint8_t b) { return b == kept + 1; }));
  }
}

TEST(MemoryTest, ThreadsAllocateAtOnce) {
  constexpr size_t kBytes = (size_t{200} << 10) + 5;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      std::vector<std::shared_ptr<void>> blocks;
      for (int round = 0; round < 100; ++round) {
        blocks.push_back(AllocateZeroed(kBytes));
        auto* bytes = static_cast<uint8_t*>(blocks.back().get());
        ASSERT_TRUE(std::all_of(bytes, bytes + kBytes, [](uint8_t b) { return b == 0; }));
        std::memset(bytes, i + 1, kBytes);
        if (round % 3 == 0) blocks.erase(blocks.begin());
      }
      for (const auto& block : blocks) {
        const auto* bytes = static_cast<const uint8_t*>(block.get());
        EXPECT_TRUE(std::all_of(bytes, bytes + kBytes, [&](uint8_t b) { return b == i + 1; }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

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

TEST(TensorMemoryTest, StartsZeroed) {
  const OwnedTensor tensor = NewMatrix(3, 5, DType::kF32);
  std::vector<float> values(15, 1);
  CopyOut(tensor, values);
  EXPECT_EQ(values, std::vector<float>(15, 0));
}

TEST(TensorMemoryTest, CopiesIntoASliceAlone) {
  const OwnedTensor tensor = NewMatrix(3, 4, DType::kF32);
  CopyIn(std::vector<float>{1, 2, 3, 4}, tensor.view.Rows(1, 2).Cols(2, 2));
  std::vector<float> values(12);
  CopyOut(tensor, values);
  EXPECT_EQ(values, (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4}));
  std::vector<float> slice(4);
  CopyOut(tensor.view.Rows(1, 2).Cols(2, 2), slice);
  EXPECT_EQ(slice, (std::vector<float>{1, 2, 3, 4}));
}

TEST(TensorMemoryTest, HoldsIndices) {
  const OwnedTensor tensor = NewMatrix(1, 3, DType::kI32);
  CopyIn(std::vector<int32_t>{-1, 0, 1 << 30}, tensor.view);
  std::vector<int32_t> values(3);
  CopyOut(tensor, values);
  EXPECT_EQ(values, (std::vector<int32_t>{-1, 0, 1 << 30}));
}

TEST(TensorMemoryTest, MayBeEmpty) {
  const OwnedTensor tensor = NewMatrix(0, 7, DType::kF32);
  std::vector<float> none;
  CopyOut(tensor, none);
  EXPECT_EQ(tensor.view.rows, 0);
}

}  // namespace
}  // namespace hippodrome::cpu::memory_test
