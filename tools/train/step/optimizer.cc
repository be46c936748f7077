#include "tools/train/step/optimizer.h"

#include <cmath>
#include <utility>

namespace hippodrome {

Optimizer::Optimizer(TrainingBackend& backend, const std::vector<Bucket>& buckets,
                     const std::function<bool(size_t bucket)>& owns, ModelFamily family,
                     const OptimizerOptions& options)
    : backend_(backend), options_(options), buckets_(buckets.size()) {
  for (size_t b = 0; b < buckets.size(); ++b) {
    if (!owns(b)) continue;
    for (const ParameterBlock& block : buckets[b]) {
      const Tensor w = block.value();
      OptimizedBlock one = {.block = block,
                            .group = GroupOf(options, family, block.parameter->name),
                            .m = backend.NewTensor(w.rows, w.cols),
                            .v = backend.NewTensor(w.rows, w.cols),
                            .average = {}};
      if (options.ema > 0) {
        one.average = backend.NewTensor(w.rows, w.cols);
        backend.Copy(w, one.average);
      }
      buckets_[b].push_back(std::move(one));
    }
  }
}

std::vector<double> Optimizer::SquaredNorms() {
  std::vector<double> squares(buckets_.size());
  for (size_t b = 0; b < buckets_.size(); ++b) {
    for (const OptimizedBlock& one : buckets_[b]) {
      squares[b] += backend_.SumOfSquares(one.block.gradient());
    }
  }
  return squares;
}

void Optimizer::Step(int64_t step, double fraction, double norm) {
  const bool clips = options_.clip > 0 && norm > options_.clip;
  AdamWStep adamw = {.beta1 = options_.beta1,
                     .beta2 = options_.beta2,
                     .epsilon = options_.epsilon,
                     .gradient_scale = clips ? options_.clip / norm : 1,
                     .step = step};
  for (const std::vector<OptimizedBlock>& bucket : buckets_) {
    for (const OptimizedBlock& one : bucket) {
      adamw.rate = fraction * (one.group.ssm ? SsmRate(options_) : options_.rate);
      adamw.weight_decay = one.group.decays ? options_.weight_decay : 0;
      const Tensor w = one.block.value();
      backend_.AdamW(adamw, one.block.gradient(), one.m, one.v, w);
      if (options_.ema > 0) backend_.MovingAverage(w, options_.ema, one.average);
    }
  }
}

double GradientNorm(const std::vector<double>& squares) {
  double sum = 0;
  for (const double square : squares) sum += square;
  return std::sqrt(sum);
}

}  // namespace hippodrome
