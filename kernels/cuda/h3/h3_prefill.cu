#include "kernels/cuda/h3/h3_prefill.h"

#include <cassert>

#include "kernels/cuda/h3/h3_lookahead.h"

namespace hippodrome::cuda {
namespace {

enum class Method : uint8_t { kScan, kTransform, kRecurrence };

// The fastest of the methods that can. Not measured: picoseconds per token and channel on an H200,
// estimated from counts of operations (N 64, head_dim 1; reading and writing bf16 alone takes 2):
//                bf16 activations   f32 activations
//   scan         3                  10 (six times the products)
//   transform    5                  5 (and the state, which the scan gives for nothing)
//   recurrence   20 or more: 350 operations that wait for each other
Method Fastest(DType activations, bool can_scan, bool can_transform) {
  if (can_scan && (activations == DType::kBF16 || !can_transform)) return Method::kScan;
  return can_transform ? Method::kTransform : Method::kRecurrence;
}

}  // namespace

void H3Sequence(Device& device, const H3SequenceCall& call) {
  assert(call.tokens() >= 1 && call.qkv.rows == call.sequences() * call.tokens());
  assert(call.o.rows == call.qkv.rows && call.o.cols == call.constants.view().d_model);
  if (call.state.looks_ahead()) H3Settle(device, call);
  const size_t shared_bytes = device.shared_bytes();
  switch (Fastest(call.constants.activations(), CanScan(call.constants, shared_bytes),
                  CanTransform(call.constants, call.start, call.tokens(), shared_bytes))) {
    case Method::kScan:
      return H3Scan(device, call);
    case Method::kTransform:
      return H3Fft(device, call);
    case Method::kRecurrence:
      return H3Recurrence(device, call);
  }
}

}  // namespace hippodrome::cuda
