// Attention of one new token: the keys of a sequence in parts, and the parts brought together.
// AttentionStep: what is launched depends on shapes alone, never on positions, so that a captured
// step can be replayed; and how a sequence is cut depends on the width of the page tables alone.
#include <algorithm>
#include <cassert>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_query.cuh"
#include "kernels/cuda/attention/attention_view.cuh"
#include "kernels/cuda/base/launch.cuh"

namespace hippodrome::cuda {
namespace {

// Part p of a sequence: keys [p part_tokens, (p + 1) part_tokens) of those that its query sees, as
// far as they are there. Of [row][head][part] the sum of 2^(s - max), max, and the sum of such
// values.
template <typename T>
struct StepView {
  AttentionView<T> view;
  const int32_t* positions;  // -1: inert
  int part_tokens;           // whole pages
  int parts;                 // of the longest sequence that the page tables allow
  float2* sums;              // (max, sum)
  float* values;             // [.., head_dim]

  // Keys that row `row` sees; 0 if it is inert.
  __device__ int Seen(int64_t row) const {
    return positions[row] + 1 - view.FirstSeen(positions[row]);
  }
  // The parts that so many keys take.
  __device__ int PartsOf(int seen) const { return (seen + part_tokens - 1) / part_tokens; }
  __device__ int64_t PartIndex(int64_t row, int head, int part) const {
    return (row * view.heads + head) * parts + part;
  }
};

// One part (blockIdx.z) of one head (blockIdx.y) of one row (blockIdx.x). The last part of a
// sequence stores the new key and value first; an only part is the output.
// Shared memory: QueryShared(head_dim) bytes.
template <typename T, typename Layout>
__global__ void __launch_bounds__(kQueryThreads, 6) AttendParts(StepView<T> s, float scale) {
  BeginDependent();
  const AttentionView<T>& view = s.view;
  const int64_t row = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y);
  const int part = static_cast<int>(blockIdx.z);
  const int thread = static_cast<int>(threadIdx.x);
  const int seen = s.Seen(row);
  const int used = s.PartsOf(seen);
  if (used == 0 && part == 0) {
    for (int j = thread; j < view.head_dim; j += kQueryThreads) {
      view.Output(row, head)[j] = FromFloat<T>(0);
    }
  }
  if (part >= used) return;

  const int64_t position = s.positions[row];
  int64_t end = (part + 1) * s.part_tokens;
  if (part == used - 1) {
    end = seen;
    T* key = view.Key(row, seen - 1, head);
    for (int j = thread; j < view.head_dim; j += kQueryThreads) {
      StoreKeyValue<1>(view, row, head, j, position, key);
    }
    __syncthreads();
  }
  const BlockSoftmax all = AttendKeys<Layout>(
      view, {.row = row, .sequence = row, .head = head, .position = position, .scale = scale},
      part * s.part_tokens, end);
  const int64_t index = s.PartIndex(row, head, part);
  for (int j = thread; j < view.head_dim; j += kQueryThreads) {
    if (used == 1) {
      view.Output(row, head)[j] = FromFloat<T>(all.Value(j) / all.sum);
    } else {
      s.values[index * view.head_dim + j] = all.Value(j);
    }
  }
  if (thread == 0 && used > 1) s.sums[index] = make_float2(all.max, all.sum);
}

// o from the parts of one head (blockIdx.y) of one row (blockIdx.x).
template <typename T>
__global__ void __launch_bounds__(kQueryThreads) CombineParts(StepView<T> s, ReadAhead weights) {
  BeginDependent();
  PrefetchShare(weights);
  const int64_t row = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y);
  const int used = s.PartsOf(s.Seen(row));
  if (used <= 1) return;
  const int64_t first = s.PartIndex(row, head, 0);
  float max = s.sums[first].x;
  for (int part = 1; part < used; ++part) max = fmaxf(max, s.sums[first + part].x);
  for (int j = static_cast<int>(threadIdx.x); j < s.view.head_dim; j += kQueryThreads) {
    float sum = 0;
    float value = 0;
    for (int part = 0; part < used; ++part) {
      const float2 sums = s.sums[first + part];
      const float factor = FastExp2(sums.x - max);
      sum = fmaf(factor, sums.y, sum);
      value = fmaf(factor, s.values[(first + part) * s.view.head_dim + j], value);
    }
    s.view.Output(row, head)[j] = FromFloat<T>(value / sum);
  }
}

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
                   .part_tokens = static_cast<int>(part_pages * page_tokens),
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
                       .shared_bytes = QueryShared(call.shape.head_dim),
                       .dependent = true};
    Launch(device, kName, AttendParts<T, Layout>, grid, s, ScoreScale(call.shape.head_dim));
  });
  if (s.parts == 1) return;
  // While parts are read memory has enough to do.
  const ReadAhead weights = device.TakeExpected(int64_t{rows} * heads);
  Launch(device, "attention_combine", CombineParts<T>,
         {.blocks = dim3(rows, heads), .threads = dim3(kQueryThreads), .dependent = true}, s,
         weights);
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
