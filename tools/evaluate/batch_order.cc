#include "tools/evaluate/batch_order.h"

#include <algorithm>
#include <numeric>

namespace hippodrome {

std::vector<std::vector<size_t>> BatchesOfOneLength(std::span<const int64_t> tokens,
                                                    int64_t max_batch_tokens) {
  std::vector<size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tokens[a] < tokens[b]; });
  std::vector<std::vector<size_t>> batches;
  for (const size_t input : order) {
    const bool fits = !batches.empty() && tokens[batches.back()[0]] == tokens[input] &&
                      (std::ssize(batches.back()) + 1) * tokens[input] <= max_batch_tokens;
    if (!fits) batches.emplace_back();
    batches.back().push_back(input);
  }
  return batches;
}

}  // namespace hippodrome
