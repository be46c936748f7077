#include "kernels/cpu/sample.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/counter_uniform.h"
#include "kernels/cpu/parallel_rows.h"
#include "kernels/cpu/sample_row.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/tensor_memory.h"

namespace hippodrome::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// A token that may be drawn. The weight is relative to the most likely token's.
struct Candidate {
  int32_t token;
  float logit;
  float weight;
};

// One row in weights, and how many tokens it has.
struct Row {
  const float* logits;
  const float* weights;
  int64_t vocab;
};

// The candidates of the given tokens, most likely first, the smallest id first among equals.
std::vector<Candidate> Sorted(const Row& row, const std::vector<int32_t>& tokens) {
  std::vector<Candidate> candidates;
  candidates.reserve(tokens.size());
  for (int32_t token : tokens) {
    if (row.weights[token] > 0) {
      candidates.push_back({token, row.logits[token], row.weights[token]});
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  return candidates;
}

double Total(const std::vector<Candidate>& candidates) {
  double total = 0;
  for (const Candidate& c : candidates) total += c.weight;
  return total;
}

// The number of leading candidates whose weights first reach `mass`; all of them if they do not.
size_t CountReaching(const std::vector<Candidate>& candidates, double mass) {
  double sum = 0;
  size_t count = 0;
  while (count < candidates.size() && sum < mass) sum += candidates[count++].weight;
  return std::max<size_t>(count, 1);
}

// The candidate at which the running sum passes `mass`; the last if rounding leaves it beyond.
int32_t TokenAt(const std::vector<Candidate>& candidates, double mass) {
  double sum = 0;
  for (const Candidate& c : candidates) {
    sum += c.weight;
    if (sum > mass) return c.token;
  }
  return candidates.back().token;
}

// A logit that the k-th largest reaches at least: the k-th largest among maxima of groups.
float TopKFloor(const Row& row, int64_t k) {
  constexpr int64_t kGroup = 64;
  std::vector<float> maxima;
  for (int64_t i = 0; i < row.vocab; i += kGroup) {
    maxima.push_back(LargestLogit(row.logits + i, std::min(kGroup, row.vocab - i)));
  }
  if (k > static_cast<int64_t>(maxima.size())) return kMinusInfinity;
  std::nth_element(maxima.begin(), maxima.begin() + (k - 1), maxima.end(), std::greater<>());
  return maxima[static_cast<size_t>(k - 1)];
}

std::vector<Candidate> TopK(const Row& row, int64_t k, float min_p) {
  std::vector<Candidate> candidates =
      Sorted(row, FindAtLeast(row.logits, row.vocab, TopKFloor(row, k)));
  candidates.resize(std::min(candidates.size(), static_cast<size_t>(k)));
  std::erase_if(candidates, [&](const Candidate& c) { return c.weight < min_p; });
  return candidates;
}

// The most likely candidates of weight min_p and more, enough of them to weigh `mass` together:
// few have to be sorted where the distribution is peaked.
std::vector<Candidate> Heaviest(const Row& row, float min_p, double mass) {
  // Room for the sums' rounding, which differs from that of the running sum in order.
  const double enough = mass * (1 + 1e-6);
  float floor = 0.25f;
  while (floor > min_p && floor > 0x1p-100f && SumAtLeast(row.weights, row.vocab, floor) < enough) {
    floor *= 0.25f;
  }
  if (floor <= 0x1p-100f) floor = 0;
  return Sorted(row, FindAtLeast(row.weights, row.vocab, std::max(floor, min_p)));
}

int32_t SampleRow(const float* logits, int64_t vocab, const SamplingParameters& p,
                  int64_t position) {
  const float max = LargestLogit(logits, vocab);
  if (max == kMinusInfinity) return 0;
  if (!(p.temperature > 0)) {
    return static_cast<int32_t>(std::find(logits, logits + vocab, max) - logits);
  }
  float* weights = ThreadScratch<float>(ScratchUse::kSampleWeights, vocab);
  double total = LogitWeights(logits, vocab, max, p.temperature, weights);
  const Row row = {logits, weights, vocab};
  const double draw = CounterUniform(p.seed, static_cast<uint64_t>(position));

  std::vector<Candidate> candidates;
  if (p.top_k > 0 && p.top_k < vocab) {
    candidates = TopK(row, p.top_k, p.min_p);
    total = Total(candidates);
  } else {
    if (p.min_p > 0) total = SumAtLeast(weights, vocab, p.min_p);
    candidates = Heaviest(row, p.min_p, (p.top_p < 1 ? p.top_p : draw) * total);
  }
  if (p.top_p < 1) {
    candidates.resize(CountReaching(candidates, p.top_p * total));
    total = Total(candidates);
  }
  return TokenAt(candidates, draw * total);
}

}  // namespace

void Sample(ThreadPool& pool, Tensor logits, int64_t vocab,
            std::span<const SamplingParameters> parameters, std::span<const int64_t> positions,
            Tensor tokens) {
  assert(vocab > 0 && vocab <= logits.cols && tokens.cols == logits.rows);
  assert(static_cast<int64_t>(parameters.size()) == logits.rows);
  assert(positions.size() == parameters.size());
  ParallelRows(pool, logits.rows, vocab, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const size_t i = static_cast<size_t>(row);
      I32Row(tokens, 0)[row] = SampleRow(F32Row(logits, row), vocab, parameters[i], positions[i]);
    }
  });
}

}  // namespace hippodrome::cpu
