// Sums over ranks that are threads, beside sums of one process.
#include "tools/train/step/gradient_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/make_backend.h"
#include "tests/testing/thread_ranks.h"

namespace hippodrome::gradient_sum_test {
namespace {

// Values whose sums are rounded, so that another order is seen.
std::vector<float> Random(size_t size, uint32_t seed) {
  std::minstd_rand random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = std::exp(4 * normal(random)) * (random() % 2 == 0 ? 1 : -1);
  return values;
}

// Three parameters with gradients, in buckets of up to 10 values.
class Model {
 public:
  Model() : backend_(MakeCpuBackend({.threads = 1})), parameters_(*backend_) {
    const std::vector<std::vector<int64_t>> shapes = {{7, 4}, {3}, {2, 12}};
    for (const std::vector<int64_t>& shape : shapes) {
      const int64_t size = shape.size() == 1 ? shape[0] : shape[0] * shape[1];
      parameters_.Add("p" + std::to_string(size), shape, Random(static_cast<size_t>(size), 1));
      Parameter& p = parameters_.all().back();
      gradients_.push_back(backend_->NewTensor(p.value.view.rows, p.value.view.cols));
      p.gradient = gradients_.back();
    }
  }

  // What micro-batch `index` would leave, parameter by parameter, those in `told` completed.
  void Learn(GradientSum& sum, int64_t index, size_t told) {
    sum.BeginMicroBatch(index);
    for (size_t i = 0; i < parameters_.all().size(); ++i) {
      Parameter& p = parameters_.all()[parameters_.all().size() - 1 - i];
      backend_->Upload(Random(p.host.size(), static_cast<uint32_t>(1000 * index) +
                                                 17 * static_cast<uint32_t>(i) + 5),
                       p.gradient);
      if (i < told) sum.Complete(p);
    }
    sum.EndMicroBatch();
  }
  void LearnAll(GradientSum& sum, size_t told) {
    sum.Begin();
    for (int64_t i = sum.share().begin; i < sum.share().end; ++i) Learn(sum, i, told);
    sum.Finish();
  }

  std::vector<float> Get(Tensor tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.rows * tensor.cols));
    backend_->Download(tensor, values);
    return values;
  }
  void Set(Tensor tensor, float value) { backend_->Fill(value, tensor); }
  std::vector<Bucket> Buckets() { return TrainedBuckets(parameters_, 10); }
  TrainingBackend& backend() { return *backend_; }

 private:
  std::unique_ptr<TrainingBackend> backend_;
  Parameters parameters_;
  std::vector<OwnedTensor> gradients_;
};

using Gradients = std::vector<std::vector<float>>;

Gradients OfOneProcess(int64_t micro_batches) {
  Model model;
  GradientSum sum(model.backend(), model.Buckets(), micro_batches, nullptr, false);
  model.LearnAll(sum, 0);
  Gradients gradients;
  for (const Bucket& bucket : sum.buckets()) {
    for (const ParameterBlock& block : bucket) gradients.push_back(model.Get(block.gradient()));
  }
  return gradients;
}

TEST(GradientSumTest, AddsInABinaryTree) {
  Model model;
  GradientSum sum(model.backend(), model.Buckets(), 3, nullptr, false);
  const ParameterBlock block = sum.buckets()[0][0];
  std::vector<std::vector<float>> parts;
  for (int64_t i = 0; i < 3; ++i) {
    model.Learn(sum, i, 3);
    if (i < 2) parts.push_back(model.Get(block.gradient()));
  }
  GradientSum one(model.backend(), model.Buckets(), 1, nullptr, false);
  const std::vector<float> total = model.Get(block.gradient());
  model.Learn(one, 2, 3);
  parts.push_back(model.Get(block.gradient()));
  for (size_t i = 0; i < total.size(); ++i) {
    EXPECT_EQ(total[i], (parts[0][i] + parts[1][i]) + parts[2][i]);
  }
}

TEST(GradientSumTest, RanksHaveTheBitsOfOneProcess) {
  for (const int64_t micro_batches : {1, 3, 8, 11}) {
    const Gradients expected = OfOneProcess(micro_batches);
    for (int count = 1; count <= std::min<int64_t>(micro_batches, 5); ++count) {
      RunRanks(count, [&](Communicator& ranks) {
        Model model;
        GradientSum sum(model.backend(), model.Buckets(), micro_batches, &ranks, false);
        for (const size_t told : {3, 0, 1}) {  // three batches, told of all gradients or of fewer
          model.LearnAll(sum, told);
          size_t i = 0;
          for (const Bucket& bucket : sum.buckets()) {
            for (const ParameterBlock& block : bucket) {
              EXPECT_EQ(model.Get(block.gradient()), expected[i++])
                  << micro_batches << " micro-batches, " << count << " ranks";
            }
          }
        }
      });
    }
  }
}

TEST(GradientSumTest, OwnersGiveTheirValuesToAll) {
  const Gradients expected = OfOneProcess(6);
  for (const int count : {1, 2, 3}) {
    RunRanks(count, [&](Communicator& ranks) {
      Model model;
      GradientSum sum(model.backend(), model.Buckets(), 6, &ranks, true);
      model.LearnAll(sum, 3);
      size_t i = 0;
      for (size_t b = 0; b < sum.buckets().size(); ++b) {
        for (const ParameterBlock& block : sum.buckets()[b]) {
          if (sum.Owns(b)) {
            EXPECT_EQ(model.Get(block.gradient()), expected[i]);
            model.Set(block.value(), static_cast<float>(b));
          }
          ++i;
        }
      }
      sum.BroadcastValues();
      for (size_t b = 0; b < sum.buckets().size(); ++b) {
        for (const ParameterBlock& block : sum.buckets()[b]) {
          for (const float value : model.Get(block.value()))
            EXPECT_EQ(value, static_cast<float>(b));
        }
      }
    });
  }
}

}  // namespace
}  // namespace hippodrome::gradient_sum_test
