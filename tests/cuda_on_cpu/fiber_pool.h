// The fibers that one block after another uses.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_FIBER_POOL_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_FIBER_POOL_H_

#include "tests/cuda_on_cpu/fiber.h"

namespace cuda_on_cpu {

inline constexpr int kMaxThreads = 1024;

// Fiber i has stack i. A thread that needs a fiber takes a free one; under ThreadSanitizer thread i
// has always fiber i, with an identity of its own, or frames of different threads on one stack
// would seem to race.
class FiberPool {
 public:
  FiberPool() : stacks_(kMaxThreads) {
    for (int i = 0; i < kMaxThreads; ++i) free_[i] = kMaxThreads - 1 - i;
  }

  UNTRACED int Take([[maybe_unused]] int thread) {
#ifdef CUDA_ON_CPU_TSAN
    return thread;
#else
    return free_[--count_];
#endif
  }
  UNTRACED void Give([[maybe_unused]] int fiber) {
#ifndef CUDA_ON_CPU_TSAN
    free_[count_++] = fiber;
#endif
  }
  UNTRACED char* Stack(int fiber) const { return stacks_.Bottom(fiber); }

#ifdef CUDA_ON_CPU_TSAN
  // To be called by what happens before the fiber begins.
  void* Identity(int fiber) {
    if (identities_[fiber] == nullptr) identities_[fiber] = __tsan_create_fiber(0);
    return identities_[fiber];
  }
  // For a fiber that was left for good in the middle.
  void Forget(int fiber) {
    __tsan_destroy_fiber(identities_[fiber]);
    identities_[fiber] = nullptr;
  }
#endif

 private:
  Stacks stacks_;
  int free_[kMaxThreads];
  int count_ = kMaxThreads;
#ifdef CUDA_ON_CPU_TSAN
  void* identities_[kMaxThreads] = {};
#endif
};

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_FIBER_POOL_H_
