// A cache of sectors between a kernel and DRAM.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_SECTOR_CACHE_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_SECTOR_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

namespace cuda_on_cpu {

inline constexpr uintptr_t kSectorBytes = 32;

// It keeps the sectors that were touched last, and knows which of their bytes were written: a
// sector is read from DRAM by the first read that finds it absent, never for a write.
class SectorCache {
 public:
  explicit SectorCache(size_t bytes) : capacity_(bytes / kSectorBytes) {}

  void Touch(uintptr_t address, size_t bytes, bool write);
  void WriteBack();

  // Bytes that were read before they were written, and that were written.
  int64_t distinct_read() const { return distinct_read_; }
  int64_t distinct_written() const { return distinct_written_; }
  // From and to DRAM.
  int64_t read_bytes() const { return read_bytes_; }
  int64_t written_bytes() const { return written_bytes_; }

 private:
  struct Sector {
    uint32_t read = 0;  // a bit for each byte
    uint32_t written = 0;
    bool valid = false;  // what DRAM has is in the cache
    bool dirty = false;
    bool cached = false;
    std::list<uintptr_t>::iterator age;
  };

  void TouchSector(uintptr_t number, uint32_t bytes, bool write);
  void Evict();

  size_t capacity_;
  std::unordered_map<uintptr_t, Sector> sectors_;
  std::list<uintptr_t> ages_;  // of those in the cache, the last used first
  int64_t distinct_read_ = 0;
  int64_t distinct_written_ = 0;
  int64_t read_bytes_ = 0;
  int64_t written_bytes_ = 0;
};

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_SECTOR_CACHE_H_
