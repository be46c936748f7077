#include "tools/train/step/gradient_all_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/make_backend.h"

namespace hippodrome::gradient_all_reduce_test {
namespace {

// Notes what it is told.
class NotingAllReduce final : public AllReduce {
 public:
  void Begin(size_t r, std::span<const Tensor> tensors) override {
    std::string note = std::to_string(r) + ":";
    for (const Tensor& tensor : tensors) note += " " + std::to_string(tensor.rows * tensor.cols);
    notes.push_back(note);
  }
  void Finish(size_t r) override { notes.push_back(std::to_string(r) + " finished"); }

  std::vector<std::string> notes;
};

// Parameters of 6, 3 and 8 values in buckets of up to 8: {8}, {3, 4}, {2}.
class GradientAllReduceTest : public testing::Test {
 protected:
  GradientAllReduceTest() : backend_(MakeCpuBackend({.threads = 1})), parameters_(*backend_) {
    for (const auto& [rows, cols] : {std::pair(3, 2), std::pair(1, 3), std::pair(1, 8)}) {
      parameters_.Add("p" + std::to_string(rows * cols), {rows, cols},
                      std::vector<float>(static_cast<size_t>(rows * cols)));
      gradients_.push_back(backend_->NewTensor(rows, cols));
      parameters_.all().back().gradient = gradients_.back();
    }
    sum_ = std::make_unique<GradientAllReduce>(TrainedBuckets(parameters_, 8), all_reduce_, 1);
  }

  Parameter& parameter(size_t i) {
    auto p = parameters_.all().begin();
    std::advance(p, i);
    return *p;
  }

  std::unique_ptr<TrainingBackend> backend_;
  Parameters parameters_;
  std::vector<OwnedTensor> gradients_;
  NotingAllReduce all_reduce_;
  std::unique_ptr<GradientAllReduce> sum_;
};

TEST_F(GradientAllReduceTest, ABucketGoesWhenAllOfItIsComplete) {
  for (int backward = 0; backward < 2; ++backward) {
    all_reduce_.notes.clear();
    sum_->Begin();
    sum_->Complete(parameter(2));
    EXPECT_THAT(all_reduce_.notes, testing::ElementsAre("1: 8"));
    sum_->Complete(parameter(1));
    EXPECT_EQ(all_reduce_.notes.size(), 1U);
    sum_->Complete(parameter(0));
    EXPECT_THAT(all_reduce_.notes, testing::ElementsAre("1: 8", "1: 3 4", "1: 2"));
    sum_->Finish();
    EXPECT_THAT(all_reduce_.notes, testing::ElementsAre("1: 8", "1: 3 4", "1: 2", "1 finished"));
  }
}

TEST_F(GradientAllReduceTest, WhatIsNotToldGoesInTheEnd) {
  sum_->Begin();
  sum_->Complete(parameter(1));
  sum_->Finish();
  EXPECT_THAT(all_reduce_.notes, testing::ElementsAre("1: 8", "1: 3 4", "1: 2", "1 finished"));
}

}  // namespace
}  // namespace hippodrome::gradient_all_reduce_test
