#include "kernels/cpu/base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>

namespace hippodrome {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPage = size_t{4} << 10;
constexpr size_t kHugePage = size_t{2} << 20;
// From here on a block has pages of its own, so that what is never touched never becomes resident.
constexpr size_t kSmallestMapping = size_t{128} << 10;
// What blocks are cut from: most matrices are no multiple of huge pages, and a product of 32 rows
// by one that comes from memory was 2.5 % slower where their ends had small ones (Zen 4).
constexpr size_t kRegion = size_t{64} << 20;

constexpr size_t Rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Zeroed memory from a huge-page border on, with the advice to use huge pages.
class Region {
 public:
  explicit Region(size_t bytes) : bytes_(Rounded(bytes, kHugePage)), mapped_(bytes_ + kHugePage) {
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    madvise(start(), bytes_, MADV_HUGEPAGE);
  }
  ~Region() { munmap(base_, mapped_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  size_t bytes() const { return bytes_; }
  char* start() const {
    return reinterpret_cast<char*>(Rounded(reinterpret_cast<size_t>(base_), kHugePage));
  }

 private:
  size_t bytes_;
  size_t mapped_;
  void* base_;
};

struct ScratchBlock {
  std::shared_ptr<void> memory;
  size_t bytes = 0;
};

thread_local std::array<ScratchBlock, kScratchUses> scratch_blocks;

}  // namespace

std::shared_ptr<void> AllocateZeroed(size_t bytes) {
  if (bytes < kSmallestMapping) {
    const size_t whole = Rounded(bytes == 0 ? 1 : bytes, kAlignment);
    void* memory = std::aligned_alloc(kAlignment, whole);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, whole);
    return {memory, std::free};
  }
  const size_t pages = Rounded(bytes, kPage);
  if (pages > kRegion / 4) {
    const auto own = std::make_shared<Region>(pages);
    return {own, own->start()};
  }
  static std::mutex mutex;
  static std::shared_ptr<Region> region;  // the last one
  static size_t used = 0;
  const std::lock_guard lock(mutex);
  if (region == nullptr || region->bytes() - used < pages) {
    region = std::make_shared<Region>(kRegion);
    used = 0;
  }
  char* const start = region->start() + used;
  used += pages;
  return {start, [pages, in = region](void* part) { madvise(part, pages, MADV_DONTNEED); }};
}

void* ThreadScratch(ScratchUse use, size_t bytes) {
  ScratchBlock& block = scratch_blocks[static_cast<size_t>(use)];
  if (block.bytes < bytes || block.memory == nullptr) {
    block.memory.reset();  // first, so that the two never coexist
    block.memory = AllocateZeroed(bytes);
    block.bytes = bytes;
  }
  return block.memory.get();
}

namespace cpu {
namespace {

template <typename T, typename Stored, typename Convert>
void CopyRowsIn(std::span<const T> values, Stored* data, const Tensor& dst, Convert convert) {
  assert(static_cast<int64_t>(values.size()) == dst.rows * dst.cols);
  for (int64_t r = 0; r < dst.rows; ++r) {
    const T* from = values.data() + r * dst.cols;
    std::transform(from, from + dst.cols, data + r * dst.stride, convert);
  }
}

template <typename T, typename Stored, typename Convert>
void CopyRowsOut(const Stored* data, const Tensor& src, std::span<T> values, Convert convert) {
  assert(static_cast<int64_t>(values.size()) == src.rows * src.cols);
  for (int64_t r = 0; r < src.rows; ++r) {
    const Stored* from = data + r * src.stride;
    std::transform(from, from + src.cols, values.data() + r * src.cols, convert);
  }
}

}  // namespace

OwnedTensor NewMatrix(int64_t rows, int64_t cols, DType dtype) {
  assert(dtype == DType::kF32 || dtype == DType::kI32);
  assert(rows >= 0 && cols >= 0);
  std::shared_ptr<void> memory = AllocateZeroed(static_cast<size_t>(rows * cols) * SizeOf(dtype));
  return {{memory.get(), dtype, rows, cols, cols}, memory};
}

void CopyIn(std::span<const float> values, Tensor dst) {
  if (dst.dtype == DType::kBF16) return CopyRowsIn(values, BF16Row(dst, 0), dst, ToBF16);
  CopyRowsIn(values, F32Row(dst, 0), dst, std::identity());
}

void CopyIn(std::span<const int32_t> values, Tensor dst) {
  CopyRowsIn(values, I32Row(dst, 0), dst, std::identity());
}

void CopyOut(Tensor src, std::span<float> values) {
  const auto to_float = [](BF16 x) { return ToFloat(x); };
  if (src.dtype == DType::kBF16) return CopyRowsOut(BF16Row(src, 0), src, values, to_float);
  CopyRowsOut(F32Row(src, 0), src, values, std::identity());
}

void CopyOut(Tensor src, std::span<int32_t> values) {
  CopyRowsOut(I32Row(src, 0), src, values, std::identity());
}

}  // namespace cpu
}  // namespace hippodrome
