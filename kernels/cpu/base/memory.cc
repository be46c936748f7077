#include "kernels/cpu/base/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace hippodrome {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// From here on a block is a mapping of its own, so that what is never touched never becomes
// resident.
constexpr size_t kSmallestMapping = size_t{128} << 10;

}  // namespace

std::shared_ptr<void> AllocateZeroed(size_t bytes) {
  if (bytes < kSmallestMapping) {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, rounded);
    return {memory, std::free};
  }
  // A large block is over-mapped by one huge page, so that it can start at a huge-page border.
  const bool huge = bytes >= kHugePage;
  const size_t mapped = huge ? bytes + kHugePage : bytes;
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  if (!huge) return {base, [mapped](void* start) { munmap(start, mapped); }};
  const size_t misaligned = reinterpret_cast<size_t>(base) % kHugePage;
  void* start = static_cast<char*>(base) + (misaligned == 0 ? 0 : kHugePage - misaligned);
  madvise(start, bytes, MADV_HUGEPAGE);
  return {start, [base, mapped](void*) { munmap(base, mapped); }};
}

}  // namespace hippodrome
