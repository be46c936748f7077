// Gives freed memory back to the system.
#ifndef HIPPODROME_SERVER_MEMORY_TRIM_H_
#define HIPPODROME_SERVER_MEMORY_TRIM_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

namespace hippodrome {

// Gives back now what is free.
void TrimMemory();

// Looks each second at what the allocator holds free, and has it give that back once it is
// kTrimBytes more than after the last time. glibc alone gives back what is free at the end of a
// heap, and keeps for good what a flood of small allocations took below.
class MemoryTrim {
 public:
  static constexpr size_t kTrimBytes = size_t{32} << 20;

  MemoryTrim() : thread_([this] { Loop(); }) {}
  ~MemoryTrim();

 private:
  void Loop();

  std::mutex mutex_;  // guards stopping_
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_MEMORY_TRIM_H_
