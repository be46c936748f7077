#include "kernels/cpu/rows/gather.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/twin_matrix.h"

namespace hippodrome::cpu::gather_test {
namespace {

using Values = std::vector<float>;

class EmbeddingTest : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, EmbeddingTest, testing::ValuesIn(kWeightTypes));

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
          Values row(kWidth);
          if (ids[i] >= 0) UnpackRow(*table, ids[i], row.data());
          float expected = row[c];
          if (typed) expected += types.At(i, c);
          if (positioned) expected += positions.At(i, c);
          EXPECT_EQ(y.values()[i * kWidth + c], expected) << i << ", " << c;
        }
      }
    }
  }
}

TEST(GatherRowsTest, PicksRowsAndZeros) {
  constexpr int64_t kWidth = 37;
  const StridedMatrix x(5, kWidth, 3, RandomValues(5 * kWidth, 1));
  const std::vector<int32_t> rows = {4, 0, -1, 4, 2, 2, -1};
  const OwnedTensor indices = NewMatrix(1, 7, DType::kI32);
  CopyIn(rows, indices.view);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const StridedMatrix y(7, kWidth, 1, std::vector<float>(7 * kWidth, 99.0f));
    GatherRows(pool, x.view(), indices, y.view());
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t c = 0; c < kWidth; ++c) {
        const float expected = rows[i] < 0 ? 0 : x.values()[size_t(rows[i]) * kWidth + c];
        EXPECT_EQ(y.values()[i * kWidth + c], expected) << i << ", " << c;
      }
    }
  }
}

TEST(GatherRowsTest, TakesNoRows) {
  ThreadPool pool(2);
  const StridedMatrix x(5, 4, 0);
  const OwnedTensor indices = NewMatrix(1, 0, DType::kI32);
  GatherRows(pool, x.view(), indices, StridedMatrix(0, 4, 0).view());
}

struct Problem {
  Problem(int64_t rows, int64_t cols, int64_t n)
      : dy(rows, cols, 3, 1), indices(NewMatrix(1, rows, DType::kI32)), table_rows(n) {
    const std::vector<float> random = RandomValues(rows, 2);
    for (int64_t i = 0; i < rows; ++i) {
      const auto index = static_cast<int32_t>((random[size_t(i)] + 1) / 2 * float(n + 1)) - 1;
      I32Row(indices, 0)[i] = std::min(index, static_cast<int32_t>(n - 1));
    }
  }

  TwinMatrix Scatter(int threads) const {
    ThreadPool pool(threads);
    TwinMatrix dtable(table_rows, dy.actual().cols, 1, 3);
    ScatterRows(pool, dy.actual(), indices, dtable.actual());
    Reference().ScatterRows(dy.expected(), indices, dtable.expected());
    return dtable;
  }

  TwinMatrix dy;
  OwnedTensor indices;
  int64_t table_rows;
};

// A row of the table sums at most all rows.
TEST(ScatterRowsTest, AddsEachRowToTheRowOfItsIndex) {
  for (const int64_t cols : {1, 63, 64, 65, 300}) {
    for (const int64_t table_rows : {1, 7, 500}) {
      const Problem p(100, cols, table_rows);
      EXPECT_LE(p.Scatter(2).Error(), Gamma(100) * 101) << cols << " columns, " << table_rows;
    }
  }
}

TEST(ScatterRowsTest, WithoutAnIndexNothingIsAdded) {
  Problem p(3, 5, 2);
  std::fill_n(I32Row(p.indices, 0), 3, -1);
  EXPECT_EQ(p.Scatter(1).values(), RandomValues(10, 3));
}

TEST(ScatterRowsTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Problem p(2000, 200, 3);
  EXPECT_EQ(p.Scatter(1).values(), p.Scatter(3).values());
}

}  // namespace
}  // namespace hippodrome::cpu::gather_test
