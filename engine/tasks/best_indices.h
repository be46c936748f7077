// The largest of many values.
#ifndef HIPPODROME_ENGINE_TASKS_BEST_INDICES_H_
#define HIPPODROME_ENGINE_TASKS_BEST_INDICES_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

namespace hippodrome {

// Whether values[a] comes before values[b]: the larger first, the smaller index among equals. A
// total order even with NaN, so that a broken model cannot break a selection.
struct LargerFirst {
  std::span<const float> values;

  bool operator()(int32_t a, int32_t b) const {
    const std::weak_ordering order = std::weak_order(values[a], values[b]);
    return order == 0 ? a < b : order > 0;
  }
};

// Those `count` of `indices` (a range of int32_t) with the largest values, best first. Not all are
// sorted: a heap of `count` passes over them.
template <typename Indices>
std::vector<int32_t> BestIndices(std::span<const float> values, const Indices& indices,
                                 int64_t count) {
  const auto all = static_cast<int64_t>(std::ranges::distance(indices));
  std::vector<int32_t> best(std::min(count, all));
  std::ranges::partial_sort_copy(indices, best, LargerFirst{values});
  return best;
}

inline std::vector<int32_t> BestIndices(std::span<const float> values, int64_t count) {
  const auto all = static_cast<int32_t>(values.size());
  return BestIndices(values, std::views::iota(int32_t{0}, all), count);
}

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TASKS_BEST_INDICES_H_
