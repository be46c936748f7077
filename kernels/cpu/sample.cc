#include "kernels/cpu/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/parallel_rows.h"
#include "kernels/cpu/sample_row.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/tensor_memory.h"

namespace hippodrome::cpu {
namespace {

// A token that may be drawn, with its weight relative to the most likely one.
struct Candidate {
  float weight;
  float logit;
  int32_t token;
};

// Most likely first, the smallest id first among equals.
bool Before(const Candidate& a, const Candidate& b) {
  if (a.logit != b.logit) return a.logit > b.logit;
  return a.token < b.token;
}

int32_t FirstEqual(const float* logits, int64_t vocab, float value) {
  return static_cast<int32_t>(std::find(logits, logits + vocab, value) - logits);
}

// The token at which the running sum of weights passes `target`; the last with any weight if
// rounding leaves the target beyond the end.
int32_t DrawToken(const float* weights, int64_t vocab, double target) {
  double sum = 0;
  int32_t chosen = 0;
  for (int64_t i = 0; i < vocab; ++i) {
    if (weights[i] == 0) continue;
    chosen = static_cast<int32_t>(i);
    sum += weights[i];
    if (sum > target) break;
  }
  return chosen;
}

int32_t DrawToken(const std::vector<Candidate>& candidates, double draw) {
  double total = 0;
  for (const Candidate& c : candidates) total += c.weight;
  double sum = 0;
  for (const Candidate& c : candidates) {
    sum += c.weight;
    if (sum > draw * total) return c.token;
  }
  return candidates.back().token;
}

// A logit that the k-th largest reaches at least: the k-th largest of the maxima of `kGroup`
// tokens.
float TopKFloor(const float* logits, int64_t vocab, int64_t k) {
  constexpr int64_t kGroup = 64;
  std::vector<float> maxima;
  maxima.reserve(static_cast<size_t>(vocab / kGroup + 1));
  for (int64_t i = 0; i < vocab; i += kGroup) {
    maxima.push_back(LargestLogit(logits + i, std::min(kGroup, vocab - i)));
  }
  if (k > static_cast<int64_t>(maxima.size())) return -std::numeric_limits<float>::infinity();
  std::nth_element(maxima.begin(), maxima.begin() + (k - 1), maxima.end(), std::greater<>());
  return maxima[static_cast<size_t>(k - 1)];
}

// Tokens with some weight of at least `least_weight` and a logit of at least `least_logit`.
std::vector<Candidate> Collect(const float* logits, const float* weights, int64_t vocab,
                               float least_logit, double least_weight) {
  std::vector<Candidate> candidates;
  for (int64_t i = 0; i < vocab; ++i) {
    if (weights[i] > 0 && weights[i] >= least_weight && logits[i] >= least_logit) {
      candidates.push_back({weights[i], logits[i], static_cast<int32_t>(i)});
    }
  }
  return candidates;
}

// Keeps the shortest beginning whose weights reach `enough`.
void KeepUntil(double enough, std::vector<Candidate>& candidates) {
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    sum += candidates[i].weight;
    if (sum >= enough) {
      candidates.resize(i + 1);
      return;
    }
  }
}

int32_t SampleFiltered(const float* logits, const float* weights, int64_t vocab, double total,
                       const SamplingParameters& p, double draw) {
  const bool top_k = p.top_k > 0 && p.top_k < vocab;
  const float least_logit =
      top_k ? TopKFloor(logits, vocab, p.top_k) : -std::numeric_limits<float>::infinity();
  // All tokens below this weight together weigh less than what top_p leaves out.
  const double negligible =
      top_k || p.top_p >= 1 ? 0 : (1 - p.top_p) * total / static_cast<double>(vocab);
  std::vector<Candidate> candidates =
      Collect(logits, weights, vocab, least_logit, std::min<double>(negligible, 0.5));
  std::sort(candidates.begin(), candidates.end(), Before);
  if (top_k) {
    candidates.resize(std::min(candidates.size(), static_cast<size_t>(p.top_k)));
    total = 0;
    for (const Candidate& c : candidates) total += c.weight;
  }
  std::erase_if(candidates, [&](const Candidate& c) { return c.weight < p.min_p; });
  if (p.top_p < 1) KeepUntil(p.top_p * total, candidates);
  return DrawToken(candidates, draw);
}

int32_t SampleRow(const float* logits, int64_t vocab, const SamplingParameters& p,
                  int64_t position) {
  const float max = LargestLogit(logits, vocab);
  if (max == -std::numeric_limits<float>::infinity()) return 0;
  if (!(p.temperature > 0)) return FirstEqual(logits, vocab, max);

  float* weights = ThreadScratch<float>(ScratchUse::kSampleWeights, vocab);
  const double total = LogitWeights(logits, vocab, max, p.temperature, weights);
  const double draw = UniformDraw(p.seed, position);
  const bool filtered = (p.top_k > 0 && p.top_k < vocab) || p.top_p < 1 || p.min_p > 0;
  if (!filtered) return DrawToken(weights, vocab, draw * total);
  return SampleFiltered(logits, weights, vocab, total, p, draw);
}

// The finaliser of SplitMix64: every input bit moves every output bit.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

double UniformDraw(uint64_t seed, int64_t position) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio
  const uint64_t key = Mix(seed + kStep);
  const uint64_t bits = Mix(key + kStep * (static_cast<uint64_t>(position) + 1));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

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
