#include "kernels/cpu/embedding.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu {
namespace {

using Values = std::vector<float>;

class EmbeddingTest : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, EmbeddingTest, testing::Values(DType::kF32, DType::kBF16));

TEST_P(EmbeddingTest, GathersRowsExactly) {
  constexpr int64_t kVocab = 131;
  constexpr int64_t kWidth = 45;
  const Values e = RandomValues(kVocab * kWidth, 1);
  const Values p = RandomValues(10 * kWidth, 2);
  const HostMatrix host = {e.data(), DType::kF32, kVocab, kWidth};
  ThreadPool pool(3);
  const auto table = PackLinear(pool, std::span(&host, 1), GetParam());
  const std::vector<int32_t> ids = {0, 130, 63, 64, 64, 7};
  const std::vector<int32_t> at = {9, 0, 3, 3, 2, 1};
  OwnedTensor id_tensor = NewMatrix(1, 6, DType::kI32);
  OwnedTensor at_tensor = NewMatrix(1, 6, DType::kI32);
  CopyIn(ids, id_tensor.view);
  CopyIn(at, at_tensor.view);
  const StridedMatrix positions(10, kWidth, 2, p);

  for (const Tensor& position_table : {Tensor{}, positions.view()}) {
    const StridedMatrix y(6, kWidth, 1);
    Embedding(pool, *table, position_table, id_tensor, at_tensor, y.view());
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t c = 0; c < kWidth; ++c) {
        const float token = e[static_cast<size_t>(ids[i]) * kWidth + c];
        float expected = GetParam() == DType::kBF16 ? ToFloat(ToBF16(token)) : token;
        if (position_table.data != nullptr) expected += p[static_cast<size_t>(at[i]) * kWidth + c];
        EXPECT_EQ(y.values()[i * kWidth + c], expected);
      }
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu
