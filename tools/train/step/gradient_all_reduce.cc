#include "tools/train/step/gradient_all_reduce.h"

namespace hippodrome {

void GradientAllReduce::Complete(const Parameter& parameter) { Sum(progress_.Complete(parameter)); }

void GradientAllReduce::Finish() {
  Sum(progress_.End());
  all_reduce_.Finish(r_);
}

void GradientAllReduce::Sum(const std::vector<size_t>& buckets) {
  for (const size_t b : buckets) {
    std::vector<Tensor> gradients;
    for (const ParameterBlock& block : buckets_[b]) gradients.push_back(block.gradient());
    all_reduce_.Begin(r_, gradients);
  }
}

}  // namespace hippodrome
