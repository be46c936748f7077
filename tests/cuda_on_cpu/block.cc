#include "tests/cuda_on_cpu/block.h"

#include "tests/cuda_on_cpu/trace.h"

#include <cstdlib>
#include <cstring>
#include <new>

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace cuda_on_cpu {
namespace {

Block* running;

UNTRACED int Lowest(unsigned set) { return __builtin_ctz(set); }
UNTRACED int Highest(unsigned set) { return 31 - __builtin_clz(set); }
UNTRACED int AnyOf(unsigned set) {
  const int nth = static_cast<int>(RandomNumber() % static_cast<unsigned>(__builtin_popcount(set)));
  for (int i = 0; i < nth; ++i) set &= set - 1;
  return Lowest(set);
}

}  // namespace

Block& Block::Running() { return *running; }

UNTRACED Block::Block(const KernelLaunch& launch, uint3 index, FiberPool& fibers)
    : launch_(launch),
      fibers_(fibers),
      index_(index),
      size_(static_cast<int>(launch.block.x * launch.block.y * launch.block.z)),
      warp_count_((size_ + kWarp - 1) / kWarp) {
  // Not a number, so that what nobody wrote is seen.
  if (posix_memalign(reinterpret_cast<void**>(&shared_), 16, launch.shared_bytes) != 0) {
    throw std::bad_alloc();
  }
  std::memset(shared_, 0xff, launch.shared_bytes);
  threads_ = new Thread[static_cast<size_t>(size_)];
  for (int i = 0; i < size_; ++i) {
    const unsigned n = static_cast<unsigned>(i);
    const dim3 block = launch.block;
    threads_[i].index = {n % block.x, n / block.x % block.y, n / (block.x * block.y)};
  }
  for (int w = 0; w < warp_count_; ++w) {
    const int lanes = size_ - w * kWarp;
    warps_[w].lanes = lanes >= kWarp ? ~0u : (1u << lanes) - 1;
    warps_[w].ready = warps_[w].lanes;
    ready_warps_ |= 1u << w;
  }
#ifdef CUDA_ON_CPU_TSAN
  host_.identity = __tsan_get_current_fiber();
  for (int i = 0; i < size_; ++i) threads_[i].context.identity = fibers.Identity(i);
#endif
}

Block::~Block() {
  delete[] threads_;
  std::free(shared_);
}

UNTRACED BlockFailure Block::Run() {
  running = this;
  blockIdx = index_;
  blockDim = launch_.block;
  gridDim = launch_.grid;
  TraceBlock(shared_, launch_.shared_bytes, size_);
  const int first = Take();
  Context& context = Ready(first);
  SetCurrent(first);
  Release(&begin_token_);
  Switch(host_, context);
  TraceBarrier(nullptr, false);
  const BlockFailure failure = Failure();
  if (failure.failed) AbandonFibers();
  Acquire(&end_token_);
  return failure;
}

UNTRACED BlockFailure Block::Failure() const {
  BlockFailure failure;
  if (ended_ == size_) return failure;
  failure.failed = true;
  failure.what = what_;
  failure.block = index_;
  failure.ended = ended_;
  int first_waiting = current_;
  for (int w = warp_count_ - 1; w >= 0; --w) {
    failure.at_barrier += __builtin_popcount(warps_[w].at_barrier);
    failure.at_operation += __builtin_popcount(warps_[w].waiting);
    const unsigned waiting = warps_[w].at_barrier | warps_[w].waiting;
    if (waiting != 0) first_waiting = w * kWarp + Lowest(waiting);
  }
  failure.thread = threads_[what_ != nullptr ? current_ : first_waiting].index;
  return failure;
}

// Those of threads that neither end nor go on.
UNTRACED void Block::AbandonFibers() {
  for (int i = 0; i < size_; ++i) {
    const int fiber = threads_[i].fiber;
    if (fiber < 0) continue;
#ifdef CUDA_ON_CPU_TSAN
    __tsan_switch_to_fiber(threads_[i].context.identity, __tsan_switch_to_fiber_no_sync);
    Release(&end_token_);
    __tsan_switch_to_fiber(host_.identity, __tsan_switch_to_fiber_no_sync);
    fibers_.Forget(fiber);
#endif
    Abandon(fibers_.Stack(fiber));
    fibers_.Give(fiber);
  }
}

// ---- Which thread runs --------------------------------------------------------------------------

// One that can go on and is not ready any more then, or kNone. A warp goes on as long as it can,
// but for shuffled order.
UNTRACED int Block::Take() {
  if (ready_warps_ == 0) return kNone;
  const ThreadOrder order = CurrentOrder();
  const bool stay = warp_ != kNone && warps_[warp_].ready != 0;
  int lane;
  if (order == ThreadOrder::kForward) {
    if (!stay) warp_ = Lowest(ready_warps_);
    lane = Lowest(warps_[warp_].ready);
  } else if (order == ThreadOrder::kReverse) {
    if (!stay) warp_ = Highest(ready_warps_);
    lane = Highest(warps_[warp_].ready);
  } else {
    if (!stay || RandomNumber() % 16 == 0) warp_ = AnyOf(ready_warps_);
    lane = AnyOf(warps_[warp_].ready);
  }
  Warp& warp = warps_[warp_];
  warp.ready &= ~(1u << lane);
  if (warp.ready == 0) ready_warps_ &= ~(1u << warp_);
  return warp_ * kWarp + lane;
}

UNTRACED void Block::SetCurrent(int thread) {
  current_ = thread;
  threadIdx = threads_[thread].index;
}

// Where the thread goes on, or starts.
UNTRACED Context& Block::Ready(int thread) {
  Thread& t = threads_[thread];
  if (t.fiber == kNotBegun) {
    t.fiber = fibers_.Take(thread);
    Prepare(t.context, fibers_.Stack(t.fiber), t.fiber, Enter);
  }
  return t.context;
}

UNTRACED void Block::Enter() {
  Arrived();
  running->RunThreads();
}

// The first frame of a fiber. A thread that ends hands its fiber to the next one that begins.
UNTRACED void Block::RunThreads() {
  for (;;) {
    Acquire(&begin_token_);
    launch_.body();
    if (MustWait()) Fail("ends without having waited for the kernels before");
    Release(&end_token_);
    ++ended_;
    Thread& thread = threads_[current_];
    const int fiber = thread.fiber;
    thread.fiber = kEnded;
    const int next = Take();
#ifndef CUDA_ON_CPU_TSAN
    if (next != kNone && threads_[next].fiber == kNotBegun) {
      threads_[next].fiber = fiber;
      SetCurrent(next);
      continue;
    }
#endif
    fibers_.Give(fiber);
    Context& to = next == kNone ? host_ : Ready(next);
    if (next != kNone) SetCurrent(next);
    Switch(thread.context, to, true);
  }
}

UNTRACED void Block::Yield() {
  Thread& thread = threads_[current_];
  const int next = Take();
  if (next == current_) return;
  Context& to = next == kNone ? host_ : Ready(next);
  if (next != kNone) SetCurrent(next);
  Switch(thread.context, to);
}

UNTRACED void Block::Fail(const char* what) {
  what_ = what;
  Switch(threads_[current_].context, host_);
  std::abort();
}

}  // namespace cuda_on_cpu
