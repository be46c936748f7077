#include "kernels/cpu/rows/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/counter_uniform.h"
#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/sample.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// The sum of exp(logit - max), in double.
double ExponentialSum(const float* logits, int64_t n, float max) {
  const HWY_CAPPED(double, 8) d;
  const hn::Rebind<float, decltype(d)> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto top = hn::Set(d, static_cast<double>(max));
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::PromoteTo(d, hn::LoadU(df, logits + i));
    sum = hn::Add(sum, hn::Exp(d, hn::Sub(x, top)));
  }
  double total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) total += std::exp(static_cast<double>(logits[i]) - max);
  return total;
}

// The largest of n values, NaN apart, minus infinity if there is none; and whether there are NaN.
std::pair<float, bool> LargestAndNaN(const float* logits, int64_t n) {
  constexpr int kTogether = 4;  // a maximum waits for the one before
  const D d;
  const V least = hn::Set(d, -std::numeric_limits<float>::infinity());
  V highest[kTogether];
  for (V& h : highest) h = least;
  auto nan = hn::IsNaN(least);
  const auto take = [&](int64_t i, V& h) {
    const V x = hn::LoadU(d, logits + i);
    const auto is_nan = hn::IsNaN(x);
    nan = hn::Or(nan, is_nan);
    h = hn::Max(h, hn::IfThenElse(is_nan, least, x));
  };
  int64_t i = 0;
  for (; i + kTogether * kLanes <= n; i += kTogether * kLanes) {
    HWY_UNROLL(4)
    for (int v = 0; v < kTogether; ++v) take(i + v * kLanes, highest[v]);
  }
  for (; i + kLanes <= n; i += kLanes) take(i, highest[0]);
  const V all = hn::Max(hn::Max(highest[0], highest[1]), hn::Max(highest[2], highest[3]));
  float largest = hn::GetLane(hn::MaxOfLanes(d, all));
  bool has_nan = !hn::AllFalse(d, nan);
  for (; i < n; ++i) {
    if (logits[i] > largest) largest = logits[i];
    has_nan |= std::isnan(logits[i]);
  }
  return {largest, has_nan};
}

// The first of n values that is `value`, or n.
int64_t FirstOf(const float* logits, int64_t n, float value) {
  const D d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto equal = hn::Eq(hn::LoadU(d, logits + i), hn::Set(d, value));
    const intptr_t at = hn::FindFirstTrue(d, equal);
    if (at >= 0) return i + at;
  }
  while (i < n && logits[i] != value) ++i;
  return i;
}

// The maximum's weight is 1 whatever its difference to itself becomes.
template <class DV>
HWY_INLINE hn::Vec<DV> Weights(DV d, const float* logits, float max, float temperature) {
  const auto x = hn::LoadU(d, logits);
  const auto top = hn::Set(d, max);
  const auto scaled = hn::Div(hn::Sub(x, top), hn::Set(d, temperature));
  return hn::IfThenElse(hn::Eq(x, top), hn::Set(d, 1.0f), cpu::HWY_NAMESPACE::Exp(d, scaled));
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

HWY_EXPORT(ExponentialSum);
HWY_EXPORT(LargestAndNaN);
HWY_EXPORT(FirstOf);
HWY_EXPORT(LogitWeights);
HWY_EXPORT(SumAtLeast);
HWY_EXPORT(FindBetween);

namespace {

float LargestLogit(const float* logits, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LargestAndNaN)(logits, n).first;
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
constexpr int32_t kNoToken = -1;

// A token that may be drawn. The weight is relative to the most likely token's.
struct Candidate {
  int32_t token;
  float logit;
  float weight;
};

// One row, or its heaviest tokens: n weights, their sum in their order, and whose they are.
struct Row {
  const float* logits;  // of all tokens
  const float* weights;
  int64_t n;
  double total;
  const int32_t* tokens = nullptr;  // ascending; without them token i is the i-th
};

// Most likely first, the smallest id first among equals.
bool Before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

std::vector<Candidate> Candidates(const Row& row, const std::vector<int32_t>& places) {
  std::vector<Candidate> candidates;
  candidates.reserve(places.size());
  for (const int32_t i : places) {
    const int32_t token = row.tokens == nullptr ? i : row.tokens[i];
    candidates.push_back({token, row.logits[token], row.weights[i]});
  }
  return candidates;
}

// Equal logits stay in the order of their tokens, and are often all there is.
void Sort(std::vector<Candidate>& candidates) {
  if (std::is_sorted(candidates.begin(), candidates.end(), Before)) return;
  std::sort(candidates.begin(), candidates.end(), Before);
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

// The same over all tokens of the row, of which only those near the place are sorted: bisects over
// the bits of a weight, which order like the weights, until few lie between.
Place FindPlace(const Row& row, double mass, bool beyond) {
  mass = std::min(mass, row.total);  // sums in another order may have come out larger
  uint32_t low = 1;                  // the weights from here on reach the mass
  uint32_t high = std::bit_cast<uint32_t>(1.0f) + 1;  // and those from here on do not
  constexpr uint32_t kNear = 1 << 13;                 // a thousandth of the weight
  while (high - low > kNear) {
    const uint32_t middle = low + (high - low) / 2;
    const bool reaches = SumAtLeast(row.weights, row.n, std::bit_cast<float>(middle)) >= mass;
    (reaches ? low : high) = middle;
  }
  std::vector<Candidate> near = Candidates(
      row,
      FindBetween(row.weights, row.n, std::bit_cast<float>(low), std::bit_cast<float>(high - 1)));
  Sort(near);
  const double above = SumAtLeast(row.weights, row.n, std::bit_cast<float>(high));
  return Walk(near, above, mass, beyond);
}

// The heaviest tokens of a row by themselves, since what is drawn is seldom beyond some hundreds.
class HeaviestTokens {
 public:
  // Those whose weights reach `mass` together, and maybe more of them.
  HeaviestTokens(const Row& row, double mass) : row_(row) {
    for (const float floor : {0x1p-6f, 0x1p-12f}) {
      if (SumAtLeast(row.weights, row.n, floor) < mass) continue;
      tokens_ = FindBetween(row.weights, row.n, floor, 1);
      for (const int32_t token : tokens_) weights_.push_back(row.weights[token]);
      row_ = {row.logits, weights_.data(), static_cast<int64_t>(weights_.size()), 0,
              tokens_.data()};
      row_.total = SumAtLeast(row_.weights, row_.n, floor);
      return;
    }
  }
  HeaviestTokens(const HeaviestTokens&) = delete;
  HeaviestTokens& operator=(const HeaviestTokens&) = delete;

  const Row& row() const { return row_; }

 private:
  std::vector<int32_t> tokens_;
  std::vector<float> weights_;
  Row row_;
};

// A logit that the k-th largest reaches at least: the k-th largest among maxima of groups.
float TopKFloor(const Row& row, int64_t k) {
  constexpr int64_t kGroup = 64;
  std::vector<float> maxima;
  for (int64_t i = 0; i < row.n; i += kGroup) {
    maxima.push_back(LargestLogit(row.logits + i, std::min(kGroup, row.n - i)));
  }
  if (k > static_cast<int64_t>(maxima.size())) return -kInfinity;
  std::nth_element(maxima.begin(), maxima.begin() + (k - 1), maxima.end(), std::greater<>());
  return maxima[static_cast<size_t>(k - 1)];
}

// The k first tokens in order.
std::vector<Candidate> TopK(const Row& row, int64_t k) {
  std::vector<Candidate> candidates =
      Candidates(row, FindBetween(row.logits, row.n, TopKFloor(row, k), kInfinity));
  if (k < static_cast<int64_t>(candidates.size())) {
    std::nth_element(candidates.begin(), candidates.begin() + k, candidates.end(), Before);
    candidates.resize(static_cast<size_t>(k));
  }
  Sort(candidates);
  return candidates;
}

// A softmax is exponential, so that the distance of a surprise from the mean surprise is that of
// its logit from the mean logit: |-log p - H| = |l - c| / T with c = sum p l.
struct TypicalLogits {
  double centre;
  float radius;

  bool Has(float logit) const { return Distance(logit) <= radius; }
  float Distance(float logit) const {
    return static_cast<float>(std::abs(static_cast<double>(logit) - centre));
  }
};

// Those nearest to their mean whose weights reach typical_p of `total`, the sum of all.
TypicalLogits FindTypical(const std::vector<Candidate>& candidates, double total,
                          double typical_p) {
  TypicalLogits typical = {0, 0};
  for (const Candidate& c : candidates) {
    if (c.weight > 0) typical.centre += c.weight / total * c.logit;
  }
  std::vector<std::pair<float, float>> nearest;  // distance, weight
  for (const Candidate& c : candidates) {
    if (c.weight > 0) nearest.emplace_back(typical.Distance(c.logit), c.weight);
  }
  std::sort(nearest.begin(), nearest.end());
  double mass = 0;
  for (size_t i = 0; i < nearest.size() && mass < typical_p * total; ++i) {
    mass += nearest[i].second;
    typical.radius = nearest[i].first;
  }
  return typical;
}

// Both samplers cut the descending order where min_p and top_p say so and draw from its beginning.
int32_t SampleTopK(const Row& row, const SamplingParameters& p, int64_t k, double draw) {
  std::vector<Candidate> candidates = TopK(row, k);
  if (p.typical_p < 1) {
    const TypicalLogits typical = FindTypical(candidates, Total(candidates), p.typical_p);
    std::erase_if(candidates, [&](const Candidate& c) { return !typical.Has(c.logit); });
  }
  const float least = p.min_p * candidates.front().weight;
  std::erase_if(candidates, [&](const Candidate& c) { return c.weight < least; });
  double total = Total(candidates);
  if (p.top_p < 1) total = Walk(candidates, 0, p.top_p * total, false).sum;
  return Walk(candidates, 0, draw * total, true).token;
}

int32_t SampleAll(const Row& row, const SamplingParameters& p, double draw) {
  double total = row.total;
  if (p.min_p > 0) total = SumAtLeast(row.weights, row.n, p.min_p);
  const bool cut = p.top_p < 1;
  const HeaviestTokens heaviest(row, (cut ? p.top_p : draw) * total);
  if (cut) total = FindPlace(heaviest.row(), p.top_p * total, false).sum;
  return FindPlace(heaviest.row(), draw * total, true).token;
}

int32_t SampleRow(const float* logits, int64_t vocab, const SamplingParameters& p,
                  int64_t position) {
  const auto [max, has_nan] = HWY_DYNAMIC_DISPATCH(LargestAndNaN)(logits, vocab);
  if (!std::isfinite(max) || has_nan) return kNoToken;
  if (!(p.temperature > 0)) {
    return static_cast<int32_t>(HWY_DYNAMIC_DISPATCH(FirstOf)(logits, vocab, max));
  }
  float* weights = ThreadScratch<float>(ScratchUse::kSampleWeights, vocab);
  const double total = LogitWeights(logits, vocab, max, p.temperature, weights);
  const Row row = {logits, weights, vocab, total};
  const double draw = CounterUniform(p.seed, static_cast<uint64_t>(position));
  // Few samplers ask for typical tokens: these are sorted.
  if (p.top_k > 0 && p.top_k < vocab) return SampleTopK(row, p, p.top_k, draw);
  if (p.typical_p < 1) return SampleTopK(row, p, vocab, draw);
  return SampleAll(row, p, draw);
}

// Changes the logits of a row while it lives.
class AdjustedRow {
 public:
  AdjustedRow(float* logits, std::span<LogitAdjustment> adjustments)
      : logits_(logits), adjustments_(adjustments) {
    for (LogitAdjustment& a : adjustments) {
      float& l = logits[a.token];
      a.before = l;
      l = (l > 0 ? l / a.repetition : l * a.repetition) + a.addend;
    }
  }
  ~AdjustedRow() {
    for (const LogitAdjustment& a : adjustments_) logits_[a.token] = a.before;
  }
  AdjustedRow(const AdjustedRow&) = delete;
  AdjustedRow& operator=(const AdjustedRow&) = delete;

 private:
  float* logits_;
  std::span<LogitAdjustment> adjustments_;
};

std::span<LogitAdjustment> AdjustmentsOf(const LogitAdjustments& all, int64_t row) {
  if (all.offsets.data == nullptr) return {};
  assert(all.entries.stride == kAdjustmentColumns);
  const int32_t* offsets = I32Row(all.offsets, 0);
  auto* first = reinterpret_cast<LogitAdjustment*>(all.entries.data);
  return {first + offsets[row], first + offsets[row + 1]};
}

// The k first tokens in order.
std::vector<Candidate> Likeliest(const float* logits, int64_t vocab, int64_t k) {
  if (k == 0) return {};
  std::vector<Candidate> first;
  const Row row = {logits, nullptr, vocab, 0};
  for (int32_t token : FindBetween(logits, vocab, TopKFloor(row, k), kInfinity)) {
    first.push_back({token, logits[token], 0});
  }
  std::sort(first.begin(), first.end(), Before);
  first.resize(static_cast<size_t>(k));
  return first;
}

}  // namespace

double LogSumExp(std::span<const float> values) {
  const auto n = static_cast<int64_t>(values.size());
  const float max = LargestLogit(values.data(), n);
  return std::log(HWY_DYNAMIC_DISPATCH(ExponentialSum)(values.data(), n, max)) + max;
}

void LogProbabilities(ThreadPool& pool, Tensor logits, int64_t vocab, Tensor tokens,
                      Tensor likeliest, Tensor log_probabilities) {
  const int64_t k = log_probabilities.cols - 1;
  assert(vocab > 0 && vocab <= logits.cols && k >= 0 && k <= vocab);
  ParallelRows(pool, logits.rows, vocab, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* l = F32Row(logits, row);
      const double log_sum = LogSumExp({l, static_cast<size_t>(vocab)});
      const auto log_p = [&](int32_t token) { return static_cast<float>(l[token] - log_sum); };
      float* out = F32Row(log_probabilities, row);
      const int32_t token = I32Row(tokens, 0)[row];
      out[0] = token < 0 ? 0 : log_p(token);
      const std::vector<Candidate> first = Likeliest(l, vocab, k);
      for (size_t i = 0; i < first.size(); ++i) {
        I32Row(likeliest, row)[i] = first[i].token;
        out[i + 1] = log_p(first[i].token);
      }
    }
  });
}

void Sample(ThreadPool& pool, Tensor logits, int64_t vocab, std::span<const SamplingRow> rows,
            const LogitAdjustments& adjustments, Tensor tokens) {
  assert(vocab > 0 && vocab <= logits.cols && tokens.cols == logits.rows);
  assert(static_cast<int64_t>(rows.size()) == logits.rows);
  ParallelRows(pool, logits.rows, vocab, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const SamplingRow& r = rows[static_cast<size_t>(row)];
      const AdjustedRow adjusted(F32Row(logits, row), AdjustmentsOf(adjustments, row));
      I32Row(tokens, 0)[row] = SampleRow(F32Row(logits, row), vocab, r.parameters, r.position);
    }
  });
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
