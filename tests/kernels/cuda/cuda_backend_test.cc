#include "kernels/cuda/cuda_backend.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

namespace hippodrome::cuda_backend_test {
namespace {

class ExpectLinearTest : public testing::Test {
 protected:
  void Normalise() {
    backend_.LayerNorm(x_.view, parameters_.view, parameters_.view, 1e-5, x_.view);
  }
  std::unique_ptr<LinearWeights> Pack(int64_t out) {
    const std::vector<float> zeros(static_cast<size_t>(out * 64));
    const HostMatrix matrix = {.data = zeros.data(), .dtype = DType::kF32, .rows = out, .cols = 64};
    return backend_.PackLinear(std::span(&matrix, 1), DType::kF32);
  }

  CudaBackend backend_;
  OwnedTensor x_ = backend_.NewTensor(2, 64);
  OwnedTensor y_ = backend_.NewTensor(2, 32);
  OwnedTensor parameters_ = backend_.NewTensor(1, 64);
};

TEST_F(ExpectLinearTest, TheOperationBeforeAsksForItsWeights) {
  const auto w = Pack(32);
  backend_.ExpectLinear(*w);
  Normalise();
  const auto asked = cuda_on_cpu::LastPrefetches();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].bytes, w->bytes());
}

// Weights that are gone are not asked for.
TEST_F(ExpectLinearTest, IsForgottenAfterTheProduct) {
  auto w = Pack(32);
  backend_.ExpectLinear(*w);
  backend_.Linear(x_.view, *w, {}, y_.view);
  w.reset();
  Normalise();
  EXPECT_TRUE(cuda_on_cpu::LastPrefetches().empty());
}

}  // namespace
}  // namespace hippodrome::cuda_backend_test
