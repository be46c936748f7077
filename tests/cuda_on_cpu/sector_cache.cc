#include "tests/cuda_on_cpu/sector_cache.h"

#include <algorithm>
#include <bit>

namespace cuda_on_cpu {

void SectorCache::Touch(uintptr_t address, size_t bytes, bool write) {
  const uintptr_t end = address + bytes;
  while (address < end) {
    const uintptr_t number = address / kSectorBytes;
    const uintptr_t first = address % kSectorBytes;
    const uintptr_t count = std::min(kSectorBytes - first, end - address);
    const auto mask = static_cast<uint32_t>(((uint64_t{1} << count) - 1) << first);
    TouchSector(number, mask, write);
    address += count;
  }
}

void SectorCache::TouchSector(uintptr_t number, uint32_t bytes, bool write) {
  Sector& sector = sectors_[number];
  if (sector.cached) {
    ages_.splice(ages_.begin(), ages_, sector.age);
  } else {
    if (ages_.size() >= capacity_) Evict();
    ages_.push_front(number);
    sector.age = ages_.begin();
    sector.cached = true;
  }
  if (write) {
    distinct_written_ += std::popcount(bytes & ~sector.written);
    sector.written |= bytes;
    sector.dirty = true;
    return;
  }
  const uint32_t unknown = bytes & ~sector.written;
  distinct_read_ += std::popcount(unknown & ~sector.read);
  sector.read |= unknown;
  // What was written went to DRAM with the sector, if it was evicted.
  if (!sector.valid && (unknown != 0 || !sector.dirty)) {
    read_bytes_ += static_cast<int64_t>(kSectorBytes);
    sector.valid = true;
  }
}

void SectorCache::Evict() {
  Sector& oldest = sectors_[ages_.back()];
  if (oldest.dirty) written_bytes_ += static_cast<int64_t>(kSectorBytes);
  oldest.dirty = oldest.valid = oldest.cached = false;
  ages_.pop_back();
}

void SectorCache::WriteBack() {
  while (!ages_.empty()) Evict();
}

}  // namespace cuda_on_cpu
