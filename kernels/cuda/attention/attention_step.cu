// AttentionStep: what is launched depends on shapes alone, never on positions, so that a recorded
// step can be repeated; and how a sequence is cut depends on the width of the page tables alone.
#include "kernels/cuda/attention/attention_step.cuh"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/base/launch.cuh"

namespace hippodrome::cuda {
namespace {

constexpr const char* kName = "attention_step";

// Few tokens cost more to start and to combine than to read; more parts than kMaxParts keep no
// device busier.
constexpr int64_t kMinPartTokens = 256;
constexpr int64_t kMaxParts = 32;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename T>
StepView<T> CutIntoParts(Device& device, const AttentionStepCall& call) {
  const int64_t page_tokens = call.pages.page_tokens();
  const int64_t pages = call.page_tables.cols;
  const int64_t part_pages =
      std::max(DivideUp(kMinPartTokens, page_tokens), DivideUp(pages, kMaxParts));
  StepView<T> s = {.view = MakeView<T>(call),
                   .positions = static_cast<const int32_t*>(call.positions.data),
                   .part_tokens = part_pages * page_tokens,
                   .parts = static_cast<int>(DivideUp(pages, part_pages)),
                   .sums = nullptr,
                   .values = nullptr};
  const int64_t parts = call.qkv.rows * call.shape.heads * s.parts;
  const size_t sum_bytes = static_cast<size_t>(parts) * sizeof(float2);
  const size_t value_bytes = static_cast<size_t>(parts * call.shape.head_dim) * sizeof(float);
  char* scratch =
      static_cast<char*>(device.Scratch(ScratchUse::kAttentionParts, sum_bytes + value_bytes));
  s.sums = reinterpret_cast<float2*>(scratch);
  s.values = reinterpret_cast<float*>(scratch + sum_bytes);
  return s;
}

template <typename T>
void Attend(Device& device, const AttentionStepCall& call) {
  const StepView<T> s = CutIntoParts<T>(device, call);
  const auto rows = static_cast<unsigned>(call.qkv.rows);
  const auto heads = static_cast<unsigned>(call.shape.heads);
  WithLayout<T>(call.shape.head_dim, /*aligned=*/true, [&]<typename Layout>(Layout) {
    const Grid grid = {.blocks = dim3(rows, heads, static_cast<unsigned>(s.parts)),
                       .threads = dim3(kQueryThreads),
                       .shared_bytes = QueryShared(call.shape.head_dim)};
    Launch(device, kName, AttendParts<T, Layout>, grid, s, ScoreScale(call.shape.head_dim));
  });
  if (s.parts == 1) return;
  Launch(device, kName, CombineParts<T>,
         {.blocks = dim3(rows, heads), .threads = dim3(kQueryThreads)}, s);
}

}  // namespace

void AttentionStep(Device& device, const AttentionStepCall& call) {
  if (call.qkv.rows == 0) return;
  assert(call.page_tables.rows == call.qkv.rows && call.positions.cols == call.qkv.rows);
  assert(call.qkv.dtype == call.pages.dtype() && call.o.dtype == call.pages.dtype());
  if (call.pages.dtype() == DType::kBF16) {
    Attend<BF16>(device, call);
  } else {
    Attend<float>(device, call);
  }
}

}  // namespace hippodrome::cuda
