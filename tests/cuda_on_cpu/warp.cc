// Operations of warps that move values between lanes.
#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/trace.h"

namespace cuda_on_cpu {
namespace {

struct ShuffleCall : WarpCall {
  Shuffle kind;
  uint64_t value;
  uint64_t result;
  int argument;
  int width;
  const char* fault = nullptr;
};

// The lane that `lane` reads, by the PTX manual's shfl.
UNTRACED int Source(const ShuffleCall& call, int lane) {
  const int begin = lane & ~(call.width - 1);
  const int end = begin + call.width;
  int source = lane;
  switch (call.kind) {
    case Shuffle::kIndex:
      return begin + (call.argument & (call.width - 1));
    case Shuffle::kUp:
      source = lane - call.argument;
      return source < begin ? lane : source;
    case Shuffle::kDown:
      source = lane + call.argument;
      return source >= end ? lane : source;
    case Shuffle::kXor:
      source = lane ^ (call.argument & (kWarp - 1));
      return source >= end ? lane : source;
  }
  return lane;
}

UNTRACED void CompleteShuffle(WarpCall* const* calls, unsigned mask) {
  TraceInstruction(WarpInstruction::kShuffle);
  for (int lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    auto& call = static_cast<ShuffleCall&>(*calls[lane]);
    const int source = Source(call, lane);
    if ((mask >> source & 1) == 0) {
      call.fault = "reads from a lane that is not in the mask of its shuffle";
    } else {
      call.result = static_cast<ShuffleCall&>(*calls[source]).value;
    }
  }
}

struct VoteCall : WarpCall {
  bool predicate;
  unsigned result;
};

UNTRACED void CompleteVote(WarpCall* const* calls, unsigned mask) {
  TraceInstruction(WarpInstruction::kVote);
  unsigned votes = 0;
  for (int lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    votes |= (static_cast<VoteCall&>(*calls[lane]).predicate ? 1u : 0u) << lane;
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) != 0) static_cast<VoteCall&>(*calls[lane]).result = votes;
  }
}

UNTRACED void CompleteBarrier(WarpCall* const*, unsigned) {
  TraceInstruction(WarpInstruction::kBarrier);
}

}  // namespace

UNTRACED uint64_t ShuffleBits(Shuffle kind, unsigned mask, uint64_t bits, int argument, int width) {
  Block& block = Block::Running();
  if (width < 1 || width > kWarp || (width & (width - 1)) != 0) {
    block.Fail("shuffles with a width that is no power of two up to 32");
  }
  ShuffleCall call;
  call.mask = mask;
  call.complete = CompleteShuffle;
  call.kind = kind;
  call.value = bits;
  call.argument = argument;
  call.width = width;
  block.Meet(call);
  if (call.fault != nullptr) block.Fail(call.fault);
  return call.result;
}

UNTRACED unsigned Vote(unsigned mask, bool predicate) {
  VoteCall call;
  call.mask = mask;
  call.complete = CompleteVote;
  call.predicate = predicate;
  Block::Running().Meet(call);
  return call.result;
}

UNTRACED void WarpBarrier(unsigned mask) {
  WarpCall call = {mask, CompleteBarrier, true};
  Block::Running().Meet(call);
}

UNTRACED int BlockBarrier(BarrierKind kind, bool predicate) {
  return Block::Running().Barrier(kind, predicate, __builtin_return_address(0));
}

UNTRACED void WaitForPrerequisites() { Block::Running().thread().has_waited = true; }

UNTRACED char* DynamicSharedMemory() { return Block::Running().shared(); }

void MemoryFence() {
  static char token;
  Release(&token);
  Acquire(&token);
}

}  // namespace cuda_on_cpu
