// What training adds beside gradients: forwards without states, and the optimizer, on the backend
// and in the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/training/solve.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/test_backend.h"

namespace hippodrome::training_operations_test {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr int64_t kRows = 13;
constexpr int64_t kCols = 67;

class TrainingOperationsTest : public testing::Test {
 protected:
  void SetUp() override {
    choice_ = MakeTestBackend();
    backend_ = dynamic_cast<TrainingBackend*>(choice_.backend.get());
    if (backend_ == nullptr) GTEST_SKIP() << "no training here. " << choice_.obstacle;
  }

  // Runs `work(backend, tensors)` on both backends, from tensors [kRows, kCols] of random values in
  // [low, high], with gaps between rows, and compares what it leaves in them: within `units`
  // roundings of the largest.
  template <typename Work>
  void ExpectSame(int64_t count, double low, double high, double units, Work work) {
    const auto run = [&](TrainingBackend& backend) {
      std::vector<OwnedTensor> memory;
      std::vector<Tensor> x;
      for (int64_t i = 0; i < count; ++i) {
        memory.push_back(backend.NewTensor(kRows + 1, kCols + 5));
        x.push_back(memory.back().view.Rows(1, kRows).Cols(3, kCols));
        const std::vector<float> values =
            GridValues(kRows * kCols, static_cast<uint32_t>(i + 1), low, high);
        backend.Upload(values, x.back());
      }
      work(backend, std::span<const Tensor>(x));
      std::vector<Numbers> left;
      for (const Tensor& tensor : x) left.push_back(Get(backend, tensor));
      return left;
    };
    const std::vector<Numbers> expected = run(*reference_);
    const std::vector<Numbers> values = run(*backend_);
    for (size_t i = 0; i < expected.size(); ++i) {
      double largest = 0;
      for (const double x : expected[i]) largest = std::max(largest, std::abs(x));
      for (size_t j = 0; j < expected[i].size(); ++j) {
        ASSERT_NEAR(values[i][j], expected[i][j], units * kUnit * largest) << i << " " << j;
      }
    }
  }

  ChosenBackend choice_;
  TrainingBackend* backend_ = nullptr;
  std::unique_ptr<TrainingBackend> reference_ = MakeReferenceBackend();
};

TEST_F(TrainingOperationsTest, Fill) {
  ExpectSame(1, -1, 1, 0, [](TrainingBackend& backend, Tensors x) { backend.Fill(0.1f, x[0]); });
}

TEST_F(TrainingOperationsTest, Copy) {
  ExpectSame(2, -1, 1, 0, [](TrainingBackend& backend, Tensors x) { backend.Copy(x[0], x[1]); });
}

TEST_F(TrainingOperationsTest, Add) {
  ExpectSame(2, -1, 1, 1, [](TrainingBackend& backend, Tensors x) { backend.Add(x[0], x[1]); });
}

TEST_F(TrainingOperationsTest, MovingAverage) {
  ExpectSame(2, -1, 1, 4,
             [](TrainingBackend& backend, Tensors x) { backend.MovingAverage(x[0], 0.99, x[1]); });
}

TEST_F(TrainingOperationsTest, SumOfSquares) {
  const std::vector<float> values = GridValues(kRows * kCols, 1);
  double expected = 0;
  for (const float x : values) expected += double{x} * x;
  for (TrainingBackend* backend : {backend_, reference_.get()}) {
    const OwnedTensor x = backend->NewTensor(kRows, kCols + 2);
    const OwnedTensor none = backend->NewTensor(kRows, kCols);
    backend->Upload(values, x.view.Cols(1, kCols));
    EXPECT_NEAR(backend->SumOfSquares(x.view.Cols(1, kCols)), expected, 1e-12 * expected);
    EXPECT_EQ(backend->SumOfSquares(none), 0);
  }
}

// Gradient, m, v and w, at the first step and at a later one. m and v lie within a factor of the
// square of the gradient, so that no quotient is near a pole.
TEST_F(TrainingOperationsTest, AdamW) {
  for (const int64_t step : {1, 2, 1000}) {
    const AdamWStep adamw = {.rate = 0.01,
                             .beta1 = 0.9,
                             .beta2 = 0.98,
                             .epsilon = 1e-6,
                             .weight_decay = 0.1,
                             .gradient_scale = 0.5,
                             .step = step};
    ExpectSame(4, 0.25, 1, 16, [&](TrainingBackend& backend, Tensors x) {
      backend.AdamW(adamw, x[0], x[1], x[2], x[3]);
    });
  }
}

TEST_F(TrainingOperationsTest, AdamWOfNothingStaysAtRest) {
  const OwnedTensor zero = backend_->NewTensor(1, 3);
  const OwnedTensor m = backend_->NewTensor(1, 3);
  const OwnedTensor v = backend_->NewTensor(1, 3);
  const OwnedTensor w = backend_->NewTensor(1, 3);
  backend_->Fill(2, w);
  backend_->AdamW({.rate = 0.1}, zero, m, v, w);
  EXPECT_EQ(Get(*backend_, w), Numbers(3, 2.0));
}

// AdamW as its paper spells it out, for one number.
TEST_F(TrainingOperationsTest, AdamWByHand) {
  const OwnedTensor g = reference_->NewTensor(1, 1);
  const OwnedTensor m = reference_->NewTensor(1, 1);
  const OwnedTensor v = reference_->NewTensor(1, 1);
  const OwnedTensor w = reference_->NewTensor(1, 1);
  Set(*reference_, {0.5}, g);
  Set(*reference_, {1}, w);
  reference_->AdamW({.rate = 0.1, .weight_decay = 0.2}, g, m, v, w);
  // After one step from rest, m / (1 - beta1) = g and v / (1 - beta2) = g^2.
  EXPECT_NEAR(Get(*reference_, w)[0], 1 - 0.1 * 0.2 - 0.1 * 0.5 / (0.5 + 1e-8), 1e-15);
  EXPECT_NEAR(Get(*reference_, m)[0], 0.05, 1e-15);
  EXPECT_NEAR(Get(*reference_, v)[0], 0.00025, 1e-15);
}

TEST_F(TrainingOperationsTest, DropsTheSameElementsEverywhere) {
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    ExpectSame(1, 0.5, 1, 2,
               [&](TrainingBackend& backend, Tensors x) { backend.Drop(p, 77, x[0]); });
  }
}

TEST_F(TrainingOperationsTest, DropsAShareOfThem) {
  constexpr int64_t kMany = 200;
  const OwnedTensor x = backend_->NewTensor(kMany, kMany);
  backend_->Fill(1, x);
  backend_->Drop(0.25, 5, x);
  double zeros = 0;
  for (const double value : Get(*backend_, x)) {
    if (value == 0) ++zeros;
    ASSERT_TRUE(value == 0 || std::abs(value - 4.0 / 3) < 1e-6);
  }
  // Five standard deviations of a binomial.
  EXPECT_NEAR(zeros, 0.25 * kMany * kMany, 5 * std::sqrt(0.25 * 0.75) * kMany);
}

// Every output of a forward that training uses instead of serving's.
class TrainingForwardTest : public TrainingOperationsTest,
                            public testing::WithParamInterface<TrainingProblem> {};

INSTANTIATE_TEST_SUITE_P(Problems, TrainingForwardTest, testing::ValuesIn(AllTrainingProblems()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TrainingForwardTest, MatchesTheReference) {
  const TrainingProblem& p = GetParam();
  if (p.large && TestBackendIsSlow()) GTEST_SKIP() << "the backend is slow";
  const Inputs inputs = InputsOf(p);
  const Numbers expected = Output(*reference_, p, inputs);
  const Numbers values = Output(*backend_, p, inputs);
  const double tolerance = OutputTolerance(*reference_, p, inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], tolerance) << i;
  }
}

}  // namespace
}  // namespace hippodrome::training_operations_test
