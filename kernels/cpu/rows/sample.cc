#include "kernels/cpu/rows/sample.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/counter_uniform.h"
#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"
#include "kernels/cpu/rows/sample_row.h"

namespace hippodrome::cpu {
namespace {

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
