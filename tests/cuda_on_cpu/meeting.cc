// Where threads of a block wait for each other.
#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/trace.h"

namespace cuda_on_cpu {

UNTRACED int Block::Barrier(BarrierKind kind, bool predicate, const void* place) {
  if (arrived_ > 0 && kind != barrier_) Fail("comes to a barrier of another kind than others");
  barrier_ = kind;
  ++arrived_;
  predicates_ += predicate ? 1 : 0;
  char* token = &barrier_tokens_[barriers_ % 2];
  Release(token);
  warps_[current_ / kWarp].at_barrier |= 1u << (current_ % kWarp);
  if (arrived_ == size_) {
    TraceBarrier(place, kind != BarrierKind::kPlain);
    predicates_of_last_ = predicates_;
    predicates_ = arrived_ = 0;
    ++barriers_;
    warp_ = kNone;
    for (int w = 0; w < warp_count_; ++w) {
      warps_[w].ready = warps_[w].lanes;
      warps_[w].at_barrier = 0;
      ready_warps_ |= 1u << w;
    }
  }
  Yield();
  Acquire(token);
  return predicates_of_last_;
}

UNTRACED void Block::Meet(WarpCall& call) {
  const int w = current_ / kWarp;
  const unsigned bit = 1u << (current_ % kWarp);
  const unsigned mask = call.mask;
  Warp& warp = warps_[w];
  if ((mask & bit) == 0) Fail("is not in the mask of its own warp operation");
#ifdef CUDA_ON_CPU_TSAN
  Meetings* meetings = call.orders_memory ? &MeetingsOf(mask) : nullptr;
  char* token = meetings == nullptr ? nullptr : &meetings->tokens[meetings->done % 2];
  if (token != nullptr) Release(token);
#endif
  warp.calls[current_ % kWarp] = &call;
  warp.waiting |= bit;
  bool together = (mask & ~warp.waiting) == 0;
  for (unsigned rest = together ? mask : 0; rest != 0; rest &= rest - 1) {
    const WarpCall& other = *warp.calls[__builtin_ctz(rest)];
    together = together && other.mask == mask && other.complete == call.complete;
  }
  if (together) {
    if (mask == warp.lanes) TraceMeeting(w);
    call.complete(warp.calls, mask);
    warp.waiting &= ~mask;
    warp.ready |= mask;
    ready_warps_ |= 1u << w;
#ifdef CUDA_ON_CPU_TSAN
    if (meetings != nullptr) ++meetings->done;
#endif
  }
  Yield();
#ifdef CUDA_ON_CPU_TSAN
  if (token != nullptr) Acquire(token);
#endif
}

#ifdef CUDA_ON_CPU_TSAN
UNTRACED Block::Meetings& Block::MeetingsOf(unsigned mask) {
  Meetings* all = meetings_[current_ / kWarp];
  for (int i = 0; i < kMasks; ++i) {
    if (all[i].mask == 0) all[i].mask = mask;
    if (all[i].mask == mask) return all[i];
  }
  Fail("uses too many different masks");
}
#endif

}  // namespace cuda_on_cpu
