// One block of a kernel: its threads as fibers, its barriers and the operations of its warps.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_BLOCK_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_BLOCK_H_

#include <cstdint>
#include <vector>

#include "tests/cuda_on_cpu/fiber_pool.h"
#include "tests/cuda_on_cpu/include/cuda_on_cpu/emulator.h"

namespace cuda_on_cpu {

inline constexpr int kWarp = 32;

// What one lane brings to an operation of its warp. When all lanes of the mask have come with the
// same `complete`, the last one computes the results of all.
struct WarpCall {
  using Complete = void (*)(WarpCall* const* calls, unsigned mask);
  unsigned mask;
  Complete complete;
  // Whether the lanes see what others wrote before: of all operations, __syncwarp() alone promises
  // it.
  bool orders_memory = false;
};

// A copy of CopyAsync16() under way.
struct PendingCopy {
  void* to;
  const void* from;  // null: zeros
};

// Instead of the number of a fiber.
inline constexpr int kNotBegun = -1;
inline constexpr int kEnded = -2;

struct Thread {
  Context context;
  uint3 index;
  int fiber = kNotBegun;
  std::vector<PendingCopy> copies;
  std::vector<size_t> groups;  // sizes of the groups that are closed
  size_t open = 0;             // copies in the group that is not
  bool has_waited = false;     // for the kernels before
};

// Why a block did not end.
struct BlockFailure {
  bool failed = false;
  const char* what = nullptr;  // null: nobody can go on
  uint3 block;
  uint3 thread;  // at fault, or one of those that wait
  int at_barrier = 0;
  int at_operation = 0;
  int ended = 0;
};

class Block {
 public:
  Block(const KernelLaunch& launch, uint3 index, FiberPool& fibers);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  BlockFailure Run();

  // For threads of the block that runs.
  static Block& Running();
  Thread& thread() { return threads_[current_]; }
  int lane() const { return current_ % kWarp; }
  char* shared() const { return shared_; }
  int current() const { return current_; }
  int Barrier(BarrierKind kind, bool predicate, const void* place);
  void Meet(WarpCall& call);
  [[noreturn]] void Fail(const char* what);
  // Whether what the kernels before write may not be there yet for the thread that runs.
  bool MustWait() const { return launch_.dependent && !threads_[current_].has_waited; }

 private:
  // The tokens of the barriers of one mask, in turn: with one, who writes after the barrier would
  // seem ordered after who reads after it.
  struct Meetings {
    unsigned mask;
    unsigned done;
    char tokens[2];
  };
  struct Warp {
    unsigned lanes;       // that exist
    unsigned ready;       // can go on
    unsigned at_barrier;  // wait
    unsigned waiting;     // wait at an operation of the warp
    WarpCall* calls[kWarp];
  };

  static constexpr int kNone = -1;  // no thread, no warp

  static void Enter();
  [[noreturn]] void RunThreads();
  int Take();
  void SetCurrent(int thread);
  Context& Ready(int thread);
  void Yield();
  Meetings& MeetingsOf(unsigned mask);
  BlockFailure Failure() const;
  void AbandonFibers();

  const KernelLaunch& launch_;
  FiberPool& fibers_;
  const uint3 index_;
  const int size_;
  const int warp_count_;
  char* shared_ = nullptr;
  Thread* threads_ = nullptr;
  Context host_;
  int current_ = 0;
  int warp_ = kNone;  // that runs; none before the first and after a barrier
  unsigned ready_warps_ = 0;
  int ended_ = 0;
  const char* what_ = nullptr;

  BarrierKind barrier_ = BarrierKind::kPlain;
  unsigned barriers_ = 0;  // completed
  int arrived_ = 0;
  int predicates_ = 0;
  int predicates_of_last_ = 0;
  char barrier_tokens_[2];
  char begin_token_;
  char end_token_;
  Warp warps_[kMaxThreads / kWarp] = {};
#ifdef CUDA_ON_CPU_TSAN
  static constexpr int kMasks = 64;
  Meetings meetings_[kMaxThreads / kWarp][kMasks] = {};
#endif
};

// The order of threads.
ThreadOrder CurrentOrder();
uint64_t RandomNumber();

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_BLOCK_H_
