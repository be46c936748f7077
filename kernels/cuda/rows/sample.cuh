// The kernel of Sample: one block chooses the token of one row.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_CUH_
#define HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_CUH_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/backend.h"
#include "kernels/counter_uniform.h"
#include "kernels/cuda/rows/sample_row.cuh"

namespace hippodrome::cuda {

inline constexpr int kMaxSampleThreads = 1024;

struct SampleArguments {
  const float* logits;  // row r at r * stride
  int64_t stride;
  int32_t vocab;
  const int32_t* rows;  // SamplingRow r at r * row_stride
  int64_t row_stride;
  int32_t* tokens;
  bool keeps_row;  // copies a row to shared memory, after the SampleMemory, before it searches it
  float unit;      // mass of the most likely token: such that masses of a row add up below 2^63
};

// The mass of a token: its probability relative to that of the most likely one, dropped by min_p.
struct Mass {
  float max;
  float temperature;
  float min_p;
  float unit;

  __device__ uint64_t operator()(float x) const {
    // Infinite logits make inf - inf: equality with the maximum is tested apart.
    const float weight = x == max ? 1.0f : expf((x - max) / temperature);
    return weight < min_p ? 0 : static_cast<uint64_t>(weight * unit);
  }
};
struct Count {
  __device__ uint64_t operator()(float) const { return 1; }
};

// The place among the tokens in order, as one number: the largest is the most likely.
__device__ inline uint64_t OrderOf(float logit, int32_t id) {
  return uint64_t{KeyOf(logit)} << 32 | ~static_cast<uint32_t>(id);
}

// What the first pass over a row finds. `order` is of its largest logit, or of token 0 with minus
// infinity; about one token in twenty reaches `hint`.
struct FirstPass {
  uint64_t order;
  uint32_t hint;
};

// Reads the row, and copies it unless `copy` is null.
__device__ inline FirstPass ReadRow(const float* logits, int32_t vocab, float* copy) {
  float largest = -std::numeric_limits<float>::infinity();
  int32_t first = 0;
#pragma unroll 8
  for (auto id = static_cast<int32_t>(threadIdx.x); id < vocab;
       id += static_cast<int32_t>(blockDim.x)) {
    const float x = logits[id];
    if (copy != nullptr) copy[id] = x;
    if (x > largest) {
      largest = x;
      first = id;
    }
  }
  // Each thread of some warp has a logit of at least the hint.
  uint64_t(&partials)[kWarp] = SharedSampleMemory().partials;
  const uint64_t warp_hint = WarpReduce(KeyOf(largest), Smaller());
  return {BlockReduce(OrderOf(largest, first), Larger(), partials),
          static_cast<uint32_t>(BlockReduce(warp_hint, Larger(), partials))};
}

// The mass of the tokens that top_k and min_p leave, which come first in the order.
__device__ inline uint64_t KeptMass(const SearchedRow& row, const Mass& mass, int32_t top_k) {
  if (top_k <= 0 || top_k >= row.all.count) {
    return SumBetween(row.all, row.lowest, row.highest, mass);
  }
  const Place last = FindPlace(row, Count(), static_cast<uint64_t>(top_k));
  return SumBetween(row.all, last.key + 1, row.highest, mass) +
         (last.rank + 1) * mass(LogitOf(last.key));
}

// Cuts the mass at the end of the nucleus, then draws a token from it. Sums are integers: what
// reaches x reaches ceil(x), and what exceeds x reaches floor(x) + 1.
__device__ inline int32_t Draw(const SearchedRow& row, const Mass& mass,
                               const SamplingParameters& p, int64_t position) {
  uint64_t kept = KeptMass(row, mass, p.top_k);
  if (p.top_p < 1) {
    const auto nucleus = static_cast<uint64_t>(ceil(p.top_p * static_cast<double>(kept)));
    kept = FindPlace(row, mass, std::clamp<uint64_t>(nucleus, 1, kept)).sum;
  }
  const double draw = CounterUniform(p.seed, static_cast<uint64_t>(position));
  const auto below = static_cast<uint64_t>(draw * static_cast<double>(kept));
  return TokenAt(row, FindPlace(row, mass, std::min(below + 1, kept)));
}

__device__ inline int32_t ChooseToken(const SampleArguments& arguments, const float* logits,
                                      const SamplingRow& parameters) {
  const SamplingParameters& p = parameters.parameters;
  const bool greedy = !(p.temperature > 0);
  float* copy = nullptr;
  if (arguments.keeps_row && !greedy) {
    copy = reinterpret_cast<float*>(SharedMemory() + sizeof(SampleMemory));
  }
  const FirstPass first = ReadRow(logits, arguments.vocab, copy);
  const auto highest = static_cast<uint32_t>(first.order >> 32);
  const uint32_t lowest = KeyOf(-std::numeric_limits<float>::infinity());
  if (greedy || highest == lowest) {
    return static_cast<int32_t>(~static_cast<uint32_t>(first.order));
  }
  const SearchedRow row = {.all = {copy != nullptr ? copy : logits, arguments.vocab, nullptr},
                           .lowest = lowest,
                           .highest = highest,
                           .hint = first.hint};
  const Mass mass = {LogitOf(highest), p.temperature, p.min_p, arguments.unit};
  return Draw(row, mass, p, parameters.position);
}

// Blocks: rows. Shared memory: a SampleMemory, then `vocab` floats if keeps_row.
__global__ void __launch_bounds__(kMaxSampleThreads) SampleRows(SampleArguments arguments) {
  const auto row = static_cast<int64_t>(blockIdx.x);
  SamplingRow parameters;
  std::memcpy(static_cast<void*>(&parameters), arguments.rows + row * arguments.row_stride,
              sizeof(parameters));
  const int32_t token =
      ChooseToken(arguments, arguments.logits + row * arguments.stride, parameters);
  if (threadIdx.x == 0) arguments.tokens[row] = token;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_CUH_
