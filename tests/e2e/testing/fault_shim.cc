// Loaded before a program with LD_PRELOAD: moves its wall clock, and lets it run out of memory, or
// of room on the disk, as the file that HIPPODROME_FAULTS names says while it runs.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

struct Faults {
  std::atomic<int64_t> clock_seconds;  // that are added to the wall clock
  // Allocations that still succeed before one fails, which counts to -1; negative: all succeed.
  std::atomic<int64_t> allocations;
  std::atomic<int64_t> disk_full;  // 1: files take half of what is written
};

Faults* Open() {
  const char* path = std::getenv("HIPPODROME_FAULTS");
  const int file = path == nullptr ? -1 : open(path, O_RDWR);
  if (file < 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(Faults), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Faults*>(memory);
}

Faults* faults = nullptr;

__attribute__((constructor)) void Start() { faults = Open(); }

bool Fails() {
  if (faults == nullptr || faults->allocations.load(std::memory_order_relaxed) < 0) return false;
  return faults->allocations.fetch_sub(1) == 0;
}

}  // namespace

void* operator new(size_t size) {
  if (Fails()) throw std::bad_alloc();
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* operator new[](size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using Function = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, time);
  if (result == 0 && clock == CLOCK_REALTIME && faults != nullptr) {
    time->tv_sec += faults->clock_seconds.load();
  }
  return result;
}

extern "C" size_t fwrite(const void* data, size_t size, size_t count, FILE* file) {
  using Function = size_t (*)(const void*, size_t, size_t, FILE*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "fwrite"));
  const bool output = file == stdout || file == stderr;
  if (output || faults == nullptr || faults->disk_full.load() == 0) {
    return real(data, size, count, file);
  }
  const size_t written = real(data, size, count / 2, file);
  errno = ENOSPC;
  return written;
}

extern "C" ssize_t write(int descriptor, const void* data, size_t size) {
  using Function = ssize_t (*)(int, const void*, size_t);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "write"));
  struct stat info;
  const bool file = descriptor > STDERR_FILENO && faults != nullptr &&
                    faults->disk_full.load() != 0 && fstat(descriptor, &info) == 0 &&
                    S_ISREG(info.st_mode);
  if (!file) return real(descriptor, data, size);
  if (size > 1) return real(descriptor, data, size / 2);
  errno = ENOSPC;
  return -1;
}
