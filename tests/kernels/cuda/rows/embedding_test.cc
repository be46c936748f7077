#include "kernels/cuda/rows/embedding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "kernels/quantized_group.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::embedding_test {
namespace {

using Values = std::vector<float>;
using Indices = std::vector<int32_t>;

constexpr int64_t kVocab = 131;
constexpr int64_t kAdded = 10;  // rows of an added table

class EmbeddingTest : public testing::TestWithParam<DType> {
 protected:
  // Rows of y from the tables, which lie `gap` elements apart but for E.
  void ExpectRows(int64_t d, int64_t gap, bool with_types, bool with_positions) {
    const Values e = RandomValues(kVocab * d, 1);
    const Values stored = StoredTable(e, d);
    const Values t = RandomValues(kAdded * d, 2);
    const Values p = RandomValues(kAdded * d, 3);
    const HostMatrix host = {e.data(), DType::kF32, kVocab, d};
    const auto table = PackLinear(device_, std::span(&host, 1), GetParam());
    const OwnedTensor ids = Upload(ids_);
    const OwnedTensor types = Upload(types_);
    const OwnedTensor positions = Upload(positions_);
    const DeviceMatrix type_table(device_, {kAdded, d, DType::kF32, gap}, t);
    const DeviceMatrix position_table(device_, {kAdded, d, DType::kF32, gap}, p);
    const DeviceMatrix y(device_, {ids.view.cols, d, DType::kF32, gap});
    Embedding(device_, *table, ids, with_types ? AddedRows{type_table.view(), types} : AddedRows{},
              with_positions ? AddedRows{position_table.view(), positions} : AddedRows{}, y.view());
    const Values values = y.values();
    for (size_t i = 0; i < ids_.size(); ++i) {
      for (int64_t c = 0; c < d; ++c) {
        const auto element = [&](const Values& from, int32_t row) {
          return row < 0 ? 0.0f : from[static_cast<size_t>(row * d + c)];
        };
        float expected = element(stored, ids_[i]);
        if (with_types) expected += element(t, types_[i]);
        if (with_positions) expected += element(p, positions_[i]);
        ASSERT_EQ(values[i * static_cast<size_t>(d) + static_cast<size_t>(c)], expected)
            << "row " << i << " column " << c << " of " << d;
      }
    }
    EXPECT_TRUE(y.SurroundingsAreZero());
  }

 private:
  // What weights of the type have of the table.
  static Values StoredTable(const Values& table, int64_t d) {
    Values stored(table.size());
    if (!IsQuantized(GetParam())) {
      for (size_t i = 0; i < table.size(); ++i) stored[i] = Stored(GetParam(), table[i]);
      return stored;
    }
    const auto width = static_cast<size_t>(d);
    for (size_t row = 0; row < table.size(); row += width) {
      for (size_t begin = 0; begin < width; begin += kInt8Group) {
        const size_t count = std::min(width - begin, size_t{kInt8Group});
        int8_t integers[kInt8Group];
        const float scale = ToFloat(
            QuantizeGroup(GetParam(), std::span(table).subspan(row + begin, count), integers));
        for (size_t k = 0; k < count; ++k) {
          stored[row + begin + k] = static_cast<float>(integers[k]) * scale;
        }
      }
    }
    return stored;
  }

  OwnedTensor Upload(const Indices& indices) {
    OwnedTensor tensor = NewMatrix(device_, 1, static_cast<int64_t>(indices.size()), DType::kI32);
    CopyIn(device_, indices, tensor);
    return tensor;
  }

  Device device_;
  // -1 adds nothing; the last row is inert.
  const Indices ids_ = {0, 130, 63, 64, 64, 7, -1};
  const Indices types_ = {1, 0, -1, 9, 1, 0, -1};
  const Indices positions_ = {9, 0, 3, 3, -1, 1, -1};
};

INSTANTIATE_TEST_SUITE_P(Types, EmbeddingTest,
                         testing::Values(DType::kF32, DType::kBF16, DType::kI8));

TEST_P(EmbeddingTest, GathersRowsExactly) {
  for (int64_t d : {1, 45, 64, 300, 1100}) {
    for (int64_t gap : {0, 1, 4}) ExpectRows(d, gap, false, false);
  }
}

TEST_P(EmbeddingTest, AddsTypesAndPositions) {
  for (int64_t d : {1, 45, 64, 300, 1100}) {
    for (int64_t gap : {0, 1, 4}) {
      ExpectRows(d, gap, false, true);
      ExpectRows(d, gap, true, false);
      ExpectRows(d, gap, true, true);
    }
  }
}

}  // namespace
}  // namespace hippodrome::cuda::embedding_test
