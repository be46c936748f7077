#include "tests/reference/sample.h"

#include <algorithm>
#include <cmath>
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

}  // namespace

int32_t SampleOne(Tensor logits, int64_t vocab, const SamplingParameters& parameters,
                  int64_t position) {
  std::vector<Candidate> kept;
  for (int64_t i = 0; i < vocab; ++i) {
    kept.push_back({static_cast<int32_t>(i), At(logits, 0, i)});
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Candidate& a, const Candidate& b) { return a.weight > b.weight; });
  if (parameters.temperature == 0) return kept[0].id;

  if (parameters.top_k > 0 && parameters.top_k < vocab) kept.resize(parameters.top_k);
  const double largest = kept[0].weight;
  for (Candidate& c : kept) c.weight = std::exp((c.weight - largest) / parameters.temperature);
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
