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

BucketProgress::BucketProgress(const std::vector<Bucket>& buckets) : left_(buckets.size()) {
  for (size_t b = 0; b < buckets.size(); ++b) {
    for (const ParameterBlock& block : buckets[b]) buckets_of_[block.parameter].push_back(b);
    sizes_.push_back(std::ssize(buckets[b]));
  }
}

void BucketProgress::Begin() { left_ = sizes_; }

std::vector<size_t> BucketProgress::Complete(const Parameter& parameter) {
  const auto buckets = buckets_of_.find(&parameter);
  if (buckets == buckets_of_.end()) return {};  // a constant
  std::vector<size_t> complete;
  for (const size_t b : buckets->second) {
    if (--left_[b] == 0) complete.push_back(b);
  }
  return complete;
}

std::vector<size_t> BucketProgress::End() {
  std::vector<size_t> incomplete;
  for (size_t b = 0; b < left_.size(); ++b) {
    if (left_[b] > 0) incomplete.push_back(b);
    left_[b] = 0;
  }
  return incomplete;
}

}  // namespace hippodrome
