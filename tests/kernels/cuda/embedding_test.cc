#include "kernels/cuda/embedding.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda {
namespace {

using Values = std::vector<float>;
using Indices = std::vector<int32_t>;

constexpr int64_t kVocab = 131;
constexpr int64_t kPositions = 10;

class EmbeddingTest : public testing::TestWithParam<DType> {
 protected:
  // Rows of y from the tables, which lie `gap` elements apart but for E.
  void ExpectRows(int64_t d, int64_t gap, bool with_positions) {
    const Values e = RandomValues(kVocab * d, 1);
    const Values p = RandomValues(kPositions * d, 2);
    const HostMatrix host = {e.data(), DType::kF32, kVocab, d};
    const auto table = PackLinear(device_, std::span(&host, 1), GetParam());
    const OwnedTensor ids = Upload(ids_);
    const OwnedTensor at = Upload(at_);
    const DeviceMatrix positions(device_, {kPositions, d, DType::kF32, gap}, p);
    const DeviceMatrix y(device_, {ids.view.cols, d, DType::kF32, gap});
    Embedding(device_, *table, with_positions ? positions.view() : Tensor{}, ids,
              with_positions ? Tensor(at) : Tensor{}, y.view());
    const Values values = y.values();
    for (size_t i = 0; i < ids_.size(); ++i) {
      for (size_t c = 0; c < static_cast<size_t>(d); ++c) {
        const size_t width = static_cast<size_t>(d);
        float expected = Stored(GetParam(), e[static_cast<size_t>(ids_[i]) * width + c]);
        if (with_positions && at_[i] >= 0) expected += p[static_cast<size_t>(at_[i]) * width + c];
        ASSERT_EQ(values[i * width + c], expected) << "row " << i << " column " << c << " of " << d;
      }
    }
    EXPECT_TRUE(y.SurroundingsAreZero());
  }

 private:
  OwnedTensor Upload(const Indices& indices) {
    OwnedTensor tensor = NewMatrix(device_, 1, static_cast<int64_t>(indices.size()), DType::kI32);
    CopyIn(device_, indices, tensor);
    return tensor;
  }

  Device device_;
  const Indices ids_ = {0, 130, 63, 64, 64, 7, 5};
  const Indices at_ = {9, 0, 3, 3, 2, 1, -1};  // the last row is inert
};

INSTANTIATE_TEST_SUITE_P(Types, EmbeddingTest, testing::Values(DType::kF32, DType::kBF16));

TEST_P(EmbeddingTest, GathersRowsExactly) {
  for (int64_t d : {1, 45, 64, 300, 1100}) {
    for (int64_t gap : {0, 1, 4}) ExpectRows(d, gap, false);
  }
}

TEST_P(EmbeddingTest, AddsPositions) {
  for (int64_t d : {1, 45, 64, 300, 1100}) {
    for (int64_t gap : {0, 1, 4}) ExpectRows(d, gap, true);
  }
}

}  // namespace
}  // namespace hippodrome::cuda
