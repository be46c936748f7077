#include "tools/train/step/parameter_blocks.h"

#include <algorithm>

#include "tools/train/step/trained_names.h"

namespace hippodrome {

int64_t SizeOf(const Bucket& bucket) {
  int64_t size = 0;
  for (const ParameterBlock& block : bucket) size += block.size();
  return size;
}

std::vector<Bucket> TrainedBuckets(Parameters& parameters, int64_t values) {
  std::vector<Bucket> buckets;
  int64_t room = 0;  // in the last of them
  for (auto p = parameters.all().rbegin(); p != parameters.all().rend(); ++p) {
    if (p->gradient.data == nullptr || !IsTrained(p->name)) continue;
    const auto [rows, cols] = std::pair(p->gradient.rows, p->gradient.cols);
    for (int64_t row = 0; row < rows;) {
      if (room < cols) {
        buckets.emplace_back();
        room = std::max(values, cols);
      }
      const int64_t count = std::min(rows - row, room / cols);
      buckets.back().push_back({.parameter = &*p, .row = row, .rows = count});
      row += count;
      room -= count * cols;
    }
  }
  return buckets;
}

}  // namespace hippodrome
