// Searches in the descending order of one row of logits, in which equal logits follow each other by
// id, by all threads of a block together.
//
// Nothing is sorted: a search bisects the keys of logits, and sums a measure of tokens (their
// number or their mass) between two keys. Measures are integers, whose sums are exact in any order.
// A NaN lies between no two keys and so belongs to no sum.
#include "kernels/cuda/rows/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/backend.h"
#include "kernels/counter_uniform.h"
#include "kernels/cuda/base/block_reduce.cuh"
#include "kernels/cuda/base/launch.cuh"

namespace hippodrome::cuda {
namespace {

constexpr int32_t kNearTokens = 4096;
constexpr int32_t kNoToken = -1;

// What the threads of a block share, at the beginning of its dynamic memory.
struct SampleMemory {
  uint64_t partials[kWarp];
  int32_t near_count;
  int32_t near[kNearTokens];  // ids of the tokens near the place that a search is after
};

__device__ inline SampleMemory& SharedSampleMemory() {
  return *reinterpret_cast<SampleMemory*>(SharedMemory());
}

// Integers in the order of the floats that are not NaN. Both zeros have the same.
constexpr uint32_t kZeroKey = 0x80000000u;
__device__ inline uint32_t KeyOf(float x) {
  const uint32_t bits = __float_as_uint(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  return bits == magnitude ? kZeroKey + magnitude : kZeroKey - magnitude;
}
__device__ inline float LogitOf(uint32_t key) {
  return __uint_as_float(key < kZeroKey ? 0x80000000u | (kZeroKey - key) : key - kZeroKey);
}

// Tokens of a row: all, or only those near a place.
struct Tokens {
  const float* logits;  // of the row, in shared or in device memory
  int32_t count;
  const int32_t* near;  // null: all
};

// The sum of measure(id, logit) over `tokens`.
template <class Measure>
__device__ uint64_t SumOver(const Tokens& tokens, Measure measure) {
  uint64_t sum = 0;
#pragma unroll 4
  for (auto i = static_cast<int32_t>(threadIdx.x); i < tokens.count;
       i += static_cast<int32_t>(blockDim.x)) {
    const int32_t id = tokens.near == nullptr ? i : tokens.near[i];
    sum += measure(id, tokens.logits[id]);
  }
  return BlockReduce(sum, Add(), SharedSampleMemory().partials);
}

// The sum of measure(logit) over those with keys in [first, last].
template <class Measure>
__device__ uint64_t SumBetween(const Tokens& tokens, uint32_t first, uint32_t last,
                               Measure measure) {
  const float floor = LogitOf(first);
  const float ceiling = LogitOf(last);
  return SumOver(tokens, [&](int32_t, float x) -> uint64_t {
    return x >= floor && x <= ceiling ? measure(x) : 0;
  });
}

// Those of `all` with keys in [first, last], or `all` again when they are too many.
__device__ inline Tokens Narrow(const Tokens& all, uint32_t first, uint32_t last) {
  SampleMemory& memory = SharedSampleMemory();
  if (threadIdx.x == 0) memory.near_count = 0;
  __syncthreads();
  const float floor = LogitOf(first);
  const float ceiling = LogitOf(last);
  for (auto id = static_cast<int32_t>(threadIdx.x); id < all.count;
       id += static_cast<int32_t>(blockDim.x)) {
    if (!(all.logits[id] >= floor && all.logits[id] <= ceiling)) continue;
    const int32_t i = atomicAdd(&memory.near_count, 1);
    if (i < kNearTokens) memory.near[i] = id;
  }
  __syncthreads();
  if (memory.near_count > kNearTokens) return all;
  return {all.logits, memory.near_count, memory.near};
}

// All tokens, and where to search for places among them.
struct SearchedRow {
  Tokens all;
  uint32_t lowest;   // the key of minus infinity
  uint32_t highest;  // the key of the largest logit
  uint32_t hint;     // a key in [lowest, highest] that a few of the tokens reach
};

// A place in the descending order. `near`, which holds all tokens with its key, is valid until the
// next search.
struct Place {
  uint32_t key;
  uint64_t rank;  // tokens with this key that come before
  uint64_t sum;   // of the measure up to and with the place
  Tokens near;
};

// The first place where the sum of measure(logit) reaches `target`, at least 1. Beyond the end of
// the row it is the place of a token with logit minus infinity, one that may not exist.
template <class Measure>
__device__ Place FindPlace(const SearchedRow& row, Measure measure, uint64_t target) {
  Tokens tokens = row.all;
  uint32_t low = row.lowest;        // the tokens from here up reach the target
  uint32_t high = row.highest + 1;  // and those from here up do not:
  uint64_t above = 0;               // this is their sum
  for (int step = 0; high - low > 1; ++step) {
    if (step % 8 == 1 && tokens.near == nullptr) tokens = Narrow(row.all, low, high - 1);
    const uint32_t middle = step == 0 ? row.hint : low + (high - low) / 2;
    const uint64_t sum = above + SumBetween(tokens, middle, high - 1, measure);
    if (sum >= target) {
      low = middle;
    } else {
      high = middle;
      above = sum;
    }
  }
  const uint64_t each = measure(LogitOf(low));
  const uint64_t rank = (target - above - 1) / each;
  return {low, rank, above + (rank + 1) * each, tokens};
}

// The token at a place. REQUIRES: it exists.
__device__ inline int32_t TokenAt(const SearchedRow& row, const Place& place) {
  const float logit = LogitOf(place.key);
  int32_t low = 0;
  int32_t high = row.all.count - 1;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    const uint64_t count = SumOver(place.near, [&](int32_t id, float x) -> uint64_t {
      return x == logit && id <= middle ? 1 : 0;
    });
    if (count > place.rank) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// The kernel: one block chooses the token of one row.

constexpr int kMaxSampleThreads = 1024;

struct SampleArguments {
  float* logits;  // row r at r * stride
  int64_t stride;
  int32_t vocab;
  const int32_t* rows;  // SamplingRow r at r * row_stride
  int64_t row_stride;
  const int32_t* offsets;  // null: no adjustments
  LogitAdjustment* adjustments;
  int32_t* tokens;
  bool keeps_row;  // copies a row to shared memory, after the SampleMemory, before it searches it
  float unit;      // of Unit()
};

// The mass of a token: its probability relative to that of the most likely one, dropped by
// typical_p and min_p.
struct Mass {
  float max;
  float temperature;
  float unit;
  float least = 0;  // weight
  double centre = 0;
  float radius = std::numeric_limits<float>::infinity();  // of the logits around the centre

  __device__ float Weight(float x) const { return x == max ? 1.0f : expf((x - max) / temperature); }
  __device__ float Distance(float x) const {
    return static_cast<float>(fabs(static_cast<double>(x) - centre));
  }
  __device__ uint64_t operator()(float x) const {
    const float weight = Weight(x);
    const bool dropped = weight < least || !(Distance(x) <= radius);
    return dropped ? 0 : static_cast<uint64_t>(weight * unit);
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
  bool has_nan;
};

// Reads the row, and copies it unless `copy` is null.
__device__ inline FirstPass ReadRow(const float* logits, int32_t vocab, float* copy) {
  float largest = -std::numeric_limits<float>::infinity();
  int32_t first = 0;
  uint64_t nans = 0;
#pragma unroll 8
  for (auto id = static_cast<int32_t>(threadIdx.x); id < vocab;
       id += static_cast<int32_t>(blockDim.x)) {
    const float x = logits[id];
    if (copy != nullptr) copy[id] = x;
    nans |= x != x ? 1 : 0;
    if (x > largest) {
      largest = x;
      first = id;
    }
  }
  // Each thread of some warp has a logit of at least the hint.
  uint64_t(&partials)[kWarp] = SharedSampleMemory().partials;
  const uint64_t warp_hint = WarpReduce(KeyOf(largest), Smaller());
  return {BlockReduce(OrderOf(largest, first), Larger(), partials),
          static_cast<uint32_t>(BlockReduce(warp_hint, Larger(), partials)),
          BlockReduce(nans, Larger(), partials) != 0};
}

// Whether a token can be chosen from such a row.
__device__ inline bool HasDistribution(const FirstPass& first) {
  const float largest = LogitOf(static_cast<uint32_t>(first.order >> 32));
  return !first.has_nan && fabsf(largest) < std::numeric_limits<float>::infinity();
}

// The tokens that top_k leaves, which come first in the order: those above a key, and some with it.
struct FirstTokens {
  uint32_t key;
  uint64_t with_key;

  template <class Measure>
  __device__ uint64_t Sum(const SearchedRow& row, Measure measure) const {
    const uint64_t above = SumBetween(row.all, key + 1, row.highest, measure);
    return with_key == 0 ? above : above + with_key * measure(LogitOf(key));
  }
};

__device__ inline FirstTokens TopK(const SearchedRow& row, int32_t top_k) {
  if (top_k <= 0 || top_k >= row.all.count) return {row.lowest, 0};  // those there have no mass
  const Place last = FindPlace(row, Count(), static_cast<uint64_t>(top_k));
  return {last.key, last.rank + 1};
}

// Sets centre and radius: the logits nearest to their mean whose mass reaches typical_p. A softmax
// is exponential, so that the distance of a surprise from the mean surprise is that of its logit
// from the mean logit, over the temperature.
__device__ inline void KeepTypical(const SearchedRow& row, const FirstTokens& kept,
                                   double typical_p, Mass& mass) {
  const Mass all = mass;
  const uint64_t total = kept.Sum(row, all);
  // d e^-d <= 1: these integers add up like masses.
  const uint64_t below = kept.Sum(row, [&](float x) -> uint64_t {
    const float d = (all.max - x) / all.temperature;
    const float weight = all.Weight(x);
    return weight == 0 ? 0 : static_cast<uint64_t>(d * weight * all.unit);
  });
  mass.centre = all.max - static_cast<double>(all.temperature) * static_cast<double>(below) /
                              static_cast<double>(total);
  const auto reached = static_cast<uint64_t>(ceil(typical_p * static_cast<double>(total)));
  const uint64_t target = std::clamp<uint64_t>(reached, 1, total);
  uint32_t low = 0;  // the smallest radius, as bits, that reaches the target is in [low, high]
  uint32_t high = __float_as_uint(std::numeric_limits<float>::infinity());
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    mass.radius = __uint_as_float(middle);
    if (kept.Sum(row, mass) >= target) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  mass.radius = __uint_as_float(low);
}

// The weight of the most likely token that has mass.
__device__ inline float LargestWeight(const SearchedRow& row, const Mass& mass) {
  return mass.Weight(LogitOf(FindPlace(row, mass, 1).key));
}

// Cuts the mass at the end of the nucleus, then draws a token from it. Sums are integers: what
// reaches x reaches ceil(x), and what exceeds x reaches floor(x) + 1.
__device__ inline int32_t Draw(const SearchedRow& row, Mass mass, const SamplingParameters& p,
                               int64_t position) {
  const FirstTokens first = TopK(row, p.top_k);
  if (p.typical_p < 1) {
    mass.least = 0;
    KeepTypical(row, first, p.typical_p, mass);
    mass.least = p.min_p * LargestWeight(row, mass);
  }
  uint64_t kept = first.Sum(row, mass);
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
  if (!HasDistribution(first)) return kNoToken;
  if (greedy) return static_cast<int32_t>(~static_cast<uint32_t>(first.order));
  const SearchedRow row = {.all = {copy != nullptr ? copy : logits, arguments.vocab, nullptr},
                           .lowest = lowest,
                           .highest = highest,
                           .hint = first.hint};
  const Mass mass = {LogitOf(highest), p.temperature, arguments.unit, p.min_p};
  return Draw(row, mass, p, parameters.position);
}

// change(adjustment) for those of a row, by all threads of the block together.
template <class Change>
__device__ void ForAdjustments(const SampleArguments& arguments, int64_t row, Change change) {
  if (arguments.offsets == nullptr) return;
  const int32_t end = arguments.offsets[row + 1];
  for (int32_t i = arguments.offsets[row] + static_cast<int32_t>(threadIdx.x); i < end;
       i += static_cast<int32_t>(blockDim.x)) {
    change(arguments.adjustments[i]);
  }
  __syncthreads();
}

// Blocks: rows. Shared memory: a SampleMemory, then `vocab` floats if keeps_row.
__global__ void __launch_bounds__(kMaxSampleThreads) SampleRows(SampleArguments arguments) {
  BeginDependent();
  const auto row = static_cast<int64_t>(blockIdx.x);
  SamplingRow parameters;
  std::memcpy(static_cast<void*>(&parameters), arguments.rows + row * arguments.row_stride,
              sizeof(parameters));
  float* logits = arguments.logits + row * arguments.stride;
  ForAdjustments(arguments, row, [&](LogitAdjustment& a) {
    float& l = logits[a.token];
    a.before = l;
    l = (l > 0 ? l / a.repetition : l * a.repetition) + a.addend;
  });
  const int32_t token = ChooseToken(arguments, logits, parameters);
  __syncthreads();
  ForAdjustments(arguments, row, [&](LogitAdjustment& a) { logits[a.token] = a.before; });
  if (threadIdx.x == 0) arguments.tokens[row] = token;
}

struct LogProbabilityArguments {
  const float* logits;  // row r at r * stride
  int64_t stride;
  int32_t vocab;
  const int32_t* tokens;
  int32_t* likeliest;  // row r at r * likeliest_stride
  int64_t likeliest_stride;
  int32_t count;  // k
  float* out;     // row r at r * out_stride
  int64_t out_stride;
  float unit;  // of Unit()
};

// The order of the most likely token that comes after `before`.
__device__ inline uint64_t NextOrder(const Tokens& tokens, uint64_t before) {
  uint64_t next = 0;
  for (auto id = static_cast<int32_t>(threadIdx.x); id < tokens.count;
       id += static_cast<int32_t>(blockDim.x)) {
    const uint64_t order = OrderOf(tokens.logits[id], id);
    if (order < before && order > next) next = order;
  }
  return BlockReduce(next, Larger(), SharedSampleMemory().partials);
}

// Blocks: rows. Shared memory: a SampleMemory.
__global__ void __launch_bounds__(kMaxSampleThreads) ScoreRows(LogProbabilityArguments arguments) {
  const auto row = static_cast<int64_t>(blockIdx.x);
  const Tokens tokens = {arguments.logits + row * arguments.stride, arguments.vocab, nullptr};
  uint64_t order = NextOrder(tokens, ~uint64_t{0});
  const float max = LogitOf(static_cast<uint32_t>(order >> 32));
  const uint64_t mass = SumOver(tokens, [&](int32_t, float x) -> uint64_t {
    return static_cast<uint64_t>(expf(x - max) * arguments.unit);
  });
  const double log_sum = max + log(static_cast<double>(mass) / arguments.unit);
  const auto log_p = [&](int32_t token) {
    return static_cast<float>(static_cast<double>(tokens.logits[token]) - log_sum);
  };
  float* out = arguments.out + row * arguments.out_stride;
  const int32_t token = arguments.tokens[row];
  if (threadIdx.x == 0) out[0] = token < 0 ? 0 : log_p(token);
  for (int32_t i = 0; i < arguments.count; ++i) {
    const auto id = static_cast<int32_t>(~static_cast<uint32_t>(order));
    if (threadIdx.x == 0) {
      arguments.likeliest[row * arguments.likeliest_stride + i] = id;
      out[i + 1] = log_p(id);
    }
    order = NextOrder(tokens, order);
  }
}

// Whole warps, with some 32 tokens to read for each thread.
int Threads(int64_t vocab) {
  const int64_t warps = (vocab + kWarp * kWarp - 1) / (kWarp * kWarp);
  return static_cast<int>(std::min<int64_t>(warps * kWarp, kMaxSampleThreads));
}

// Mass of the most likely token: such that masses of a row add up below 2^63.
float Unit(int64_t vocab) {
  const int bits = std::bit_width(static_cast<uint64_t>(vocab));
  return static_cast<float>(uint64_t{1} << (62 - bits));
}

}  // namespace

void LogProbabilities(Device& device, Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                      Tensor log_probabilities) {
  assert(vocab > 0 && vocab <= logits.cols && logits.dtype == DType::kF32);
  if (logits.rows == 0) return;
  const LogProbabilityArguments arguments = {
      .logits = static_cast<const float*>(logits.data),
      .stride = logits.stride,
      .vocab = static_cast<int32_t>(vocab),
      .tokens = static_cast<const int32_t*>(tokens.data),
      .likeliest = static_cast<int32_t*>(likeliest.data),
      .likeliest_stride = likeliest.stride,
      .count = static_cast<int32_t>(log_probabilities.cols - 1),
      .out = static_cast<float*>(log_probabilities.data),
      .out_stride = log_probabilities.stride,
      .unit = Unit(vocab),
  };
  Launch(device, "log_probabilities", ScoreRows,
         {.blocks = dim3(static_cast<unsigned>(logits.rows)),
          .threads = dim3(static_cast<unsigned>(Threads(vocab))),
          .shared_bytes = sizeof(SampleMemory)},
         arguments);
}

void Sample(Device& device, Tensor logits, int64_t vocab, Tensor rows,
            const LogitAdjustments& adjustments, Tensor tokens) {
  assert(vocab > 0 && vocab <= logits.cols && logits.dtype == DType::kF32);
  assert(rows.rows == logits.rows && rows.cols == kSamplingColumns);
  assert(tokens.cols == logits.rows);
  if (logits.rows == 0) return;
  const size_t kept_bytes = sizeof(SampleMemory) + static_cast<size_t>(vocab) * sizeof(float);
  const bool keeps_row = kept_bytes <= device.shared_bytes();
  const SampleArguments arguments = {
      .logits = static_cast<float*>(logits.data),
      .stride = logits.stride,
      .vocab = static_cast<int32_t>(vocab),
      .rows = static_cast<const int32_t*>(rows.data),
      .row_stride = rows.stride,
      .offsets = static_cast<const int32_t*>(adjustments.offsets.data),
      .adjustments = static_cast<LogitAdjustment*>(adjustments.entries.data),
      .tokens = static_cast<int32_t*>(tokens.data),
      .keeps_row = keeps_row,
      .unit = Unit(vocab),
  };
  Launch(device, "sample", SampleRows,
         {.blocks = dim3(static_cast<unsigned>(logits.rows)),
          .threads = dim3(static_cast<unsigned>(Threads(vocab))),
          .shared_bytes = keeps_row ? kept_bytes : sizeof(SampleMemory),
          .dependent = true},
         arguments);
}

}  // namespace hippodrome::cuda
