// Code that stops in the middle and goes on later, on a stack of its own.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_FIBER_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_FIBER_H_

#include <cstddef>

#include "tests/cuda_on_cpu/sanitizers.h"
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace cuda_on_cpu {

// Bytes of one stack. Instrumented frames are large.
#if defined(CUDA_ON_CPU_TSAN) || defined(CUDA_ON_CPU_ASAN) || defined(CUDA_ON_CPU_COUNT)
inline constexpr size_t kStackBytes = size_t{1} << 20;
#else
inline constexpr size_t kStackBytes = size_t{256} << 10;
#endif

// Stacks for `count` fibers, given back together.
class Stacks {
 public:
  explicit Stacks(int count);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // The lowest address.
  UNTRACED char* Bottom(int i) const { return memory_ + i * kStackBytes; }

 private:
  char* memory_;
  size_t bytes_;
};

// Where code goes on that was left.
struct Context {
#ifdef __x86_64__
  void* stack_pointer = nullptr;
#else
  ucontext_t state;
#endif
  // For AddressSanitizer.
  const void* bottom = nullptr;
  size_t bytes = 0;
  void* fake_stack = nullptr;
  // For ThreadSanitizer.
  void* identity = nullptr;
};

// The first switch to `context` calls `entry`, which must call Arrived() and never return. Fibers
// number `i` start a little apart, or their frames would share the same few lines of the cache.
void Prepare(Context& context, char* stack, int i, void (*entry)());
void Arrived();

// Leaves `from` for `to`; returns when somebody switches to `from`. `last`: nobody will.
void Switch(Context& from, Context& to, bool last = false);

// Forgets what AddressSanitizer knows of frames that will never return.
void Abandon(char* stack);

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_FIBER_H_
