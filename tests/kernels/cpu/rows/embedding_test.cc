#include "kernels/cpu/rows/embedding.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::embedding_test {
namespace {

using Values = std::vector<float>;

class EmbeddingTest : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, EmbeddingTest, testing::Values(DType::kF32, DType::kBF16));

constexpr int64_t kVocab = 131;
constexpr int64_t kWidth = 45;

OwnedTensor Indices(const std::vector<int32_t>& values) {
  OwnedTensor tensor = NewMatrix(1, static_cast<int64_t>(values.size()), DType::kI32);
  CopyIn(values, tensor.view);
  return tensor;
}

// A table of learned rows and the row of each token.
struct Added {
  Added(int64_t table_rows, std::vector<int32_t> rows_of_tokens, uint32_t seed)
      : values(RandomValues(table_rows * kWidth, seed)),
        table(table_rows, kWidth, 2, values),
        at(std::move(rows_of_tokens)),
        indices(Indices(at)) {}

  AddedRows view() const { return {table.view(), indices}; }
  float At(size_t token, size_t column) const {
    return at[token] < 0 ? 0 : values[static_cast<size_t>(at[token]) * kWidth + column];
  }

  Values values;
  StridedMatrix table;
  std::vector<int32_t> at;
  OwnedTensor indices;
};

TEST_P(EmbeddingTest, AddsTheRowsOfTokensTypesAndPositions) {
  const Values e = RandomValues(kVocab * kWidth, 1);
  const HostMatrix host = {e.data(), DType::kF32, kVocab, kWidth};
  ThreadPool pool(3);
  const auto table = PackLinear(pool, std::span(&host, 1), GetParam());
  const std::vector<int32_t> ids = {0, 130, -1, 63, 64, 64, 7, -1};
  const OwnedTensor id_tensor = Indices(ids);
  const Added types(2, {0, 1, 1, 1, 0, -1, 0, -1}, 2);
  const Added positions(10, {9, 0, -1, 3, 3, 2, -1, -1}, 3);

  for (const bool typed : {false, true}) {
    for (const bool positioned : {false, true}) {
      const StridedMatrix y(8, kWidth, 1, Values(8 * kWidth, 99.0f));
      Embedding(pool, *table, id_tensor, typed ? types.view() : AddedRows{},
                positioned ? positions.view() : AddedRows{}, y.view());
      for (size_t i = 0; i < ids.size(); ++i) {
        for (size_t c = 0; c < kWidth; ++c) {
          float expected = ids[i] < 0 ? 0 : e[static_cast<size_t>(ids[i]) * kWidth + c];
          if (GetParam() == DType::kBF16) expected = ToFloat(ToBF16(expected));
          if (typed) expected += types.At(i, c);
          if (positioned) expected += positions.At(i, c);
          EXPECT_EQ(y.values()[i * kWidth + c], expected) << i << ", " << c;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu::embedding_test
