#include "kernels/cuda/h3/h3_prefill.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>
#include <vector>

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

// What one launch takes: a method, and for a transform its points.
using Launched = std::pair<Method, int64_t>;

Launched LaunchOf(Device& device, const H3SequenceCall& call, const SequencePart& part) {
  const size_t shared_bytes = device.shared_bytes();
  const Method method =
      Fastest(call.constants.activations(), CanScan(call.constants, shared_bytes),
              CanTransform(call.constants, part.start, part.tokens, shared_bytes));
  return {method, method == Method::kTransform ? TransformPoints(part.tokens) : 0};
}

void Run(Device& device, Method method, const H3SequenceCall& call) {
  switch (method) {
    case Method::kScan:
      return H3Scan(device, call);
    case Method::kTransform:
      return H3Fft(device, call);
    case Method::kRecurrence:
      return H3Recurrence(device, call);
  }
}

// `parts` of the call, none of which is inert.
void RunParts(Device& device, H3SequenceCall call, std::span<const SequencePart> parts) {
  call.parts = parts;
  if (call.state.looks_ahead()) H3Settle(device, call);
  std::map<Launched, std::vector<SequencePart>> launches;
  for (const SequencePart& part : parts) launches[LaunchOf(device, call, part)].push_back(part);
  for (const auto& [launched, together] : launches) {
    call.parts = together;
    Run(device, launched.first, call);
  }
}

// A part that is run up to its next capture, and then on.
class CutPart {
 public:
  // captures: of this part.
  CutPart(const SequencePart& part, std::span<const StateCapture> captures)
      : part_(part), captures_(captures) {}

  bool done() const { return taken_ == part_.tokens; }

  SequencePart Next() const {
    const int32_t end = captures_.empty() ? part_.tokens : captures_.front().tokens;
    return {.slot = part_.slot,
            .first_row = part_.first_row + taken_,
            .tokens = end - taken_,
            .start = part_.start + taken_};
  }

  // What Next() gave has been run.
  void Take(Device& device, H3Slots& state) {
    taken_ += Next().tokens;
    for (; !captures_.empty() && captures_.front().tokens == taken_;
         captures_ = captures_.subspan(1)) {
      state.Copy(device, part_.slot, captures_.front().to);
    }
  }

 private:
  SequencePart part_;
  std::span<const StateCapture> captures_;
  int32_t taken_ = 0;
};

// The parts that are not inert, each with its captures.
std::vector<CutPart> CutParts(const H3SequenceCall& call) {
  std::vector<CutPart> parts;
  std::span<const StateCapture> captures = call.captures;
  for (size_t i = 0; i < call.parts.size(); ++i) {
    size_t mine = 0;
    while (mine < captures.size() && captures[mine].part == static_cast<int32_t>(i)) ++mine;
    if (call.parts[i].slot >= 0) parts.emplace_back(call.parts[i], captures.first(mine));
    captures = captures.subspan(mine);
  }
  return parts;
}

}  // namespace

void H3Sequence(Device& device, const H3SequenceCall& call) {
  assert(call.o.rows == call.qkv.rows && call.o.cols == call.constants.view().d_model);
  assert(std::all_of(call.captures.begin(), call.captures.end(), [&](const StateCapture& capture) {
    return FitsCapture(call.parts[static_cast<size_t>(capture.part)], capture.tokens);
  }));
  std::vector<CutPart> parts = CutParts(call);
  while (!parts.empty()) {
    std::vector<SequencePart> next;
    for (const CutPart& part : parts) next.push_back(part.Next());
    RunParts(device, call, next);
    for (CutPart& part : parts) part.Take(device, call.state);
    std::erase_if(parts, [](const CutPart& part) { return part.done(); });
  }
}

}  // namespace hippodrome::cuda
