#include "kernels/cpu/rows/sample.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/counter_uniform.h"
#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/sample.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// The largest of n values, NaN apart; minus infinity if there is none.
float LargestLogit(const float* logits, int64_t n) {
  const D d;
  const V least = hn::Set(d, -std::numeric_limits<float>::infinity());
  V highest = least;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V x = hn::LoadU(d, logits + i);
    highest = hn::Max(highest, hn::IfThenElse(hn::Eq(x, x), x, least));
  }
  float max = hn::GetLane(hn::MaxOfLanes(d, highest));
  for (; i < n; ++i) {
    if (logits[i] > max) max = logits[i];
  }
  return max;
}

// Infinite logits make inf - inf: equality with the maximum is tested apart.
template <class DV>
HWY_INLINE hn::Vec<DV> Weights(DV d, const float* logits, float max, float temperature) {
  const auto x = hn::LoadU(d, logits);
  const auto top = hn::Set(d, max);
  const auto scaled = hn::Div(hn::Sub(x, top), hn::Set(d, temperature));
  return hn::IfThenElse(hn::Eq(x, top), hn::Set(d, 1.0f), Exp(d, scaled));
}

// The sum of value(d, i) over [0, n). Lanes add up in float over short runs only.
template <class Value>
HWY_INLINE double Sum(int64_t n, const Value& value) {
  const D d;
  constexpr int64_t kRun = 64 * kLanes;
  double total = 0;
  int64_t i = 0;
  while (i + kLanes <= n) {
    V sum = hn::Zero(d);
    for (const int64_t end = i + kRun; i < end && i + kLanes <= n; i += kLanes) {
      sum = hn::Add(sum, value(d, i));
    }
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  }
  for (; i < n; ++i) total += hn::GetLane(value(One(), i));
  return total;
}

// weights_i = exp((logits_i - max) / temperature), 1 for a logit that equals max, 0 for NaN.
// Returns their sum. REQUIRES: max = LargestLogit(...) > -inf, temperature > 0.
double LogitWeights(const float* logits, int64_t n, float max, float temperature, float* weights) {
  return Sum(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto w = Weights(d, logits + i, max, temperature);
    hn::StoreU(w, d, weights + i);
    return w;
  });
}

// The sum of the weights of `floor` and more.
double SumAtLeast(const float* weights, int64_t n, float floor) {
  return Sum(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto w = hn::LoadU(d, weights + i);
    return hn::IfThenElseZero(hn::Ge(w, hn::Set(d, floor)), w);
  });
}

// The indices of the values in [floor, ceiling], ascending; NaN is none of them.
std::vector<int32_t> FindBetween(const float* values, int64_t n, float floor, float ceiling) {
  const D d;
  const V least = hn::Set(d, floor);
  const V most = hn::Set(d, ceiling);
  std::vector<int32_t> found;
  const auto collect = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (values[i] >= floor && values[i] <= ceiling) found.push_back(static_cast<int32_t>(i));
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V v = hn::LoadU(d, values + i);
    if (!hn::AllFalse(d, hn::And(hn::Ge(v, least), hn::Le(v, most)))) collect(i, i + kLanes);
  }
  collect(i, n);
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(LargestLogit);
HWY_EXPORT(LogitWeights);
HWY_EXPORT(SumAtLeast);
HWY_EXPORT(FindBetween);

namespace {

float LargestLogit(const float* logits, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LargestLogit)(logits, n);
}

double LogitWeights(const float* logits, int64_t n, float max, float temperature, float* weights) {
  return HWY_DYNAMIC_DISPATCH(LogitWeights)(logits, n, max, temperature, weights);
}

double SumAtLeast(const float* weights, int64_t n, float floor) {
  return HWY_DYNAMIC_DISPATCH(SumAtLeast)(weights, n, floor);
}

std::vector<int32_t> FindBetween(const float* values, int64_t n, float floor, float ceiling) {
  return HWY_DYNAMIC_DISPATCH(FindBetween)(values, n, floor, ceiling);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A token that may be drawn. The weight is relative to the most likely token's.
struct Candidate {
  int32_t token;
  float logit;
  float weight;
};

// One row: logits, their weights, and the sum of these.
struct Row {
  const float* logits;
  const float* weights;
  int64_t vocab;
  double total;
};

// Most likely first, the smallest id first among equals.
bool Before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

std::vector<Candidate> Candidates(const Row& row, const std::vector<int32_t>& tokens) {
  std::vector<Candidate> candidates;
  candidates.reserve(tokens.size());
  for (int32_t token : tokens) {
    candidates.push_back({token, row.logits[token], row.weights[token]});
  }
  return candidates;
}

double Total(const std::vector<Candidate>& candidates) {
  double total = 0;
  for (const Candidate& c : candidates) total += c.weight;
  return total;
}

// A place in the descending order of tokens: the token there and the weight up to and with it.
struct Place {
  int32_t token;
  double sum;
};

// Where the running sum over `candidates`, begun with `sum`, reaches `mass`, or passes it if
// `beyond`; the last with any weight if rounding leaves the mass beyond the end.
Place Walk(const std::vector<Candidate>& candidates, double sum, double mass, bool beyond) {
  Place place = {candidates.front().token, sum};
  for (const Candidate& c : candidates) {
    if (c.weight == 0) break;
    place = {c.token, place.sum + c.weight};
    if (beyond ? place.sum > mass : place.sum >= mass) break;
  }
  return place;
}

// The same over all tokens, of which only those near the place are sorted: bisects over the bits of
// a weight, which order like the weights, until few lie between.
Place FindPlace(const Row& row, double mass, bool beyond) {
  mass = std::min(mass, row.total);  // sums in another order may have come out larger
  uint32_t low = 1;                  // the weights from here on reach the mass
  uint32_t high = std::bit_cast<uint32_t>(1.0f) + 1;  // and those from here on do not
  constexpr uint32_t kNear = 1 << 13;                 // a thousandth of the weight
  while (high - low > kNear) {
    const uint32_t middle = low + (high - low) / 2;
    const bool reaches = SumAtLeast(row.weights, row.vocab, std::bit_cast<float>(middle)) >= mass;
    (reaches ? low : high) = middle;
  }
  std::vector<Candidate> near =
      Candidates(row, FindBetween(row.weights, row.vocab, std::bit_cast<float>(low),
                                  std::bit_cast<float>(high - 1)));
  std::sort(near.begin(), near.end(), Before);
  const double above = SumAtLeast(row.weights, row.vocab, std::bit_cast<float>(high));
  return Walk(near, above, mass, beyond);
}

// A logit that the k-th largest reaches at least: the k-th largest among maxima of groups.
float TopKFloor(const Row& row, int64_t k) {
  constexpr int64_t kGroup = 64;
  std::vector<float> maxima;
  for (int64_t i = 0; i < row.vocab; i += kGroup) {
    maxima.push_back(LargestLogit(row.logits + i, std::min(kGroup, row.vocab - i)));
  }
  if (k > static_cast<int64_t>(maxima.size())) return -kInfinity;
  std::nth_element(maxima.begin(), maxima.begin() + (k - 1), maxima.end(), std::greater<>());
  return maxima[static_cast<size_t>(k - 1)];
}

// The k first tokens in order.
std::vector<Candidate> TopK(const Row& row, int64_t k) {
  std::vector<Candidate> candidates =
      Candidates(row, FindBetween(row.logits, row.vocab, TopKFloor(row, k), kInfinity));
  if (k < static_cast<int64_t>(candidates.size())) {
    std::nth_element(candidates.begin(), candidates.begin() + k, candidates.end(), Before);
    candidates.resize(static_cast<size_t>(k));
  }
  std::sort(candidates.begin(), candidates.end(), Before);
  return candidates;
}

// Both samplers cut the descending order where min_p and top_p say so and draw from its beginning.
int32_t SampleTopK(const Row& row, const SamplingParameters& p, double draw) {
  std::vector<Candidate> candidates = TopK(row, p.top_k);
  std::erase_if(candidates, [&](const Candidate& c) { return c.weight < p.min_p; });
  double total = Total(candidates);
  if (p.top_p < 1) total = Walk(candidates, 0, p.top_p * total, false).sum;
  return Walk(candidates, 0, draw * total, true).token;
}

int32_t SampleAll(const Row& row, const SamplingParameters& p, double draw) {
  double total = row.total;
  if (p.min_p > 0) total = SumAtLeast(row.weights, row.vocab, p.min_p);
  if (p.top_p < 1) total = FindPlace(row, p.top_p * total, false).sum;
  return FindPlace(row, draw * total, true).token;
}

int32_t SampleRow(const float* logits, int64_t vocab, const SamplingParameters& p,
                  int64_t position) {
  const float max = LargestLogit(logits, vocab);
  if (max == -kInfinity) return 0;
  if (!(p.temperature > 0)) {
    return static_cast<int32_t>(std::find(logits, logits + vocab, max) - logits);
  }
  float* weights = ThreadScratch<float>(ScratchUse::kSampleWeights, vocab);
  const double total = LogitWeights(logits, vocab, max, p.temperature, weights);
  const Row row = {logits, weights, vocab, total};
  const double draw = CounterUniform(p.seed, static_cast<uint64_t>(position));
  if (p.top_k > 0 && p.top_k < vocab) return SampleTopK(row, p, draw);
  return SampleAll(row, p, draw);
}

}  // namespace

void Sample(ThreadPool& pool, Tensor logits, int64_t vocab, std::span<const SamplingRow> rows,
            Tensor tokens) {
  assert(vocab > 0 && vocab <= logits.cols && tokens.cols == logits.rows);
  assert(static_cast<int64_t>(rows.size()) == logits.rows);
  ParallelRows(pool, logits.rows, vocab, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const SamplingRow& r = rows[static_cast<size_t>(row)];
      I32Row(tokens, 0)[row] = SampleRow(F32Row(logits, row), vocab, r.parameters, r.position);
    }
  });
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
