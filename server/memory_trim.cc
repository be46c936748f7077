#include "server/memory_trim.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>

namespace hippodrome {
namespace {

// In all arenas; what was given back counts on, for it is free still.
size_t FreeBytes() { return mallinfo2().fordblks; }

}  // namespace

void TrimMemory() { malloc_trim(0); }

MemoryTrim::~MemoryTrim() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void MemoryTrim::Loop() {
  size_t least = FreeBytes();  // since the last time
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; })) {
    const size_t now = FreeBytes();
    least = std::min(least, now);
    if (now < least + kTrimBytes) continue;
    TrimMemory();
    least = now;
  }
}

}  // namespace hippodrome
