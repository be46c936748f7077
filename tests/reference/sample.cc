#include "tests/reference/sample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/counter_uniform.h"
#include "tests/reference/matrix.h"

namespace hippodrome::reference {
namespace {

struct Candidate {
  int32_t id;
  double weight;  // the logit, then its probability
};

void Normalize(std::vector<Candidate>& kept) {
  double sum = 0;
  for (const Candidate& c : kept) sum += c.weight;
  for (Candidate& c : kept) c.weight /= sum;
}

// The tokens whose surprise is nearest to its mean, in their order.
void KeepTypical(std::vector<Candidate>& kept, double typical_p) {
  double entropy = 0;
  for (const Candidate& c : kept) entropy -= c.weight > 0 ? c.weight * std::log(c.weight) : 0;
  const auto distance = [&](const Candidate& c) { return std::abs(-std::log(c.weight) - entropy); };
  std::vector<Candidate> nearest = kept;
  std::stable_sort(nearest.begin(), nearest.end(), [&](const Candidate& a, const Candidate& b) {
    return distance(a) < distance(b);
  });
  double mass = 0;
  double radius = 0;
  for (size_t i = 0; i < nearest.size() && mass < typical_p; ++i) {
    mass += nearest[i].weight;
    radius = distance(nearest[i]);
  }
  std::erase_if(kept, [&](const Candidate& c) { return c.weight == 0 || distance(c) > radius; });
}

bool HasDistribution(const std::vector<Candidate>& all) {
  bool any = false;
  for (const Candidate& c : all) {
    if (std::isnan(c.weight) || c.weight == std::numeric_limits<double>::infinity()) return false;
    any |= std::isfinite(c.weight);
  }
  return any;
}

}  // namespace

std::vector<double> Adjusted(Tensor logits, Tensor adjustments) {
  std::vector<double> row(logits.cols);
  for (int64_t i = 0; i < logits.cols; ++i) row[i] = At(logits, 0, i);
  for (int64_t i = 0; i < adjustments.rows; ++i) {
    LogitAdjustment a;
    std::memcpy(static_cast<void*>(&a), &IndexAt(adjustments, i, 0), sizeof(a));
    double& l = row[a.token];
    l = (l > 0 ? l / a.repetition : l * a.repetition) + a.addend;
  }
  return row;
}

void LogProbabilities(Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                      Tensor log_probabilities) {
  for (int64_t r = 0; r < logits.rows; ++r) {
    std::vector<Candidate> all;
    double largest = At(logits, r, 0);
    for (int64_t i = 0; i < vocab; ++i) {
      all.push_back({static_cast<int32_t>(i), At(logits, r, i)});
      largest = std::max(largest, all.back().weight);
    }
    double sum = 0;
    for (const Candidate& c : all) sum += std::exp(c.weight - largest);
    const double log_sum = std::log(sum) + largest;
    const int32_t token = IndexAt(tokens, 0, r);
    At(log_probabilities, r, 0) = token < 0 ? 0 : all[token].weight - log_sum;
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.weight > b.weight; });
    for (int64_t k = 0; k + 1 < log_probabilities.cols; ++k) {
      IndexAt(likeliest, r, k) = all[k].id;
      At(log_probabilities, r, k + 1) = all[k].weight - log_sum;
    }
  }
}

int32_t SampleOne(Tensor logits, int64_t vocab, const SamplingParameters& parameters,
                  int64_t position) {
  std::vector<Candidate> kept;
  for (int64_t i = 0; i < vocab; ++i) {
    kept.push_back({static_cast<int32_t>(i), At(logits, 0, i)});
  }
  if (!HasDistribution(kept)) return -1;
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Candidate& a, const Candidate& b) { return a.weight > b.weight; });
  if (parameters.temperature == 0) return kept[0].id;

  if (parameters.top_k > 0 && parameters.top_k < vocab) kept.resize(parameters.top_k);
  const double largest = kept[0].weight;
  for (Candidate& c : kept) c.weight = std::exp((c.weight - largest) / parameters.temperature);
  Normalize(kept);

  if (parameters.typical_p < 1) KeepTypical(kept, parameters.typical_p);
  Normalize(kept);

  const double least = parameters.min_p * kept[0].weight;
  std::erase_if(kept, [&](const Candidate& c) { return c.weight < least; });
  Normalize(kept);

  double mass = 0;
  size_t nucleus = 0;
  while (nucleus < kept.size() && mass < parameters.top_p) mass += kept[nucleus++].weight;
  kept.resize(std::max<size_t>(nucleus, 1));
  Normalize(kept);

  double draw = CounterUniform(parameters.seed, static_cast<uint64_t>(position));
  for (const Candidate& c : kept) {
    if (draw < c.weight) return c.id;
    draw -= c.weight;
  }
  return kept.back().id;
}

}  // namespace hippodrome::reference
