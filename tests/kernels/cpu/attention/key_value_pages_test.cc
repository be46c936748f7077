#include "kernels/cpu/attention/key_value_pages.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/make_backend.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/reference/reference_backend.h"

namespace hippodrome::cpu::key_value_pages_test {
namespace {

TEST(KeyValuePagesTest, EveryRowHasItsOwnMemory) {
  constexpr int64_t kHeads = 3;
  constexpr int64_t kHeadDim = 5;
  constexpr int64_t kTokens = 4;
  PagedRows pages({kHeads, kHeadDim, 0}, 2, kTokens, DType::kF32);
  EXPECT_EQ(pages.pages(), 2);
  EXPECT_EQ(pages.page_tokens(), kTokens);
  EXPECT_EQ(pages.bytes_per_page(), kTokens * 2 * kHeads * kHeadDim * 4);

  const int32_t table[] = {1, 0};
  std::set<const float*> elements;
  for (int64_t position = 0; position < 2 * kTokens; ++position) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const float* key = pages.Key<float>(table, position, head);
      for (int64_t i = 0; i < kHeadDim; ++i) {
        elements.insert(key + i);
        elements.insert(key + pages.value_offset() + i);
      }
    }
  }
  EXPECT_EQ(elements.size(), static_cast<size_t>(2 * kTokens * 2 * kHeads * kHeadDim));
  EXPECT_EQ(*elements.rbegin() - *elements.begin(), static_cast<int64_t>(elements.size()) - 1);
}

TEST(KeyValuePagesTest, FindsKeysAcrossPages) {
  const PagedRows pages({2, 3, 0}, 4, 4, DType::kBF16);
  const int32_t table[] = {2, 0, 3};
  const BF16* keys[9];
  pages.FindKeys(table, 1, 2, 9, keys);
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(keys[i], pages.Key<BF16>(table, 2 + i, 1));
}

using Values = std::vector<float>;

constexpr AttentionShape kShape = {.heads = 3, .head_dim = 5};
constexpr int64_t kWidth = 15;

struct Rows {
  Values keys, values;
  bool operator==(const Rows&) const = default;
};

Rows Export(Backend& b, const KeyValuePages& pages, std::span<const int32_t> table, int64_t first,
            int64_t count) {
  Rows rows = {Values(static_cast<size_t>(count * kWidth)),
               Values(static_cast<size_t>(count * kWidth))};
  b.ExportRows(pages, table, first, count, rows.keys, rows.values);
  return rows;
}

// Such as are kept beside weights of a type.
Rows RandomRows(int64_t count, DType weights) {
  Rows rows = {RandomValues(count * kWidth, 1), RandomValues(count * kWidth, 2)};
  if (KeyValueType(weights) == DType::kF32) return rows;
  for (float& x : rows.keys) x = ToFloat(ToBF16(x));
  for (float& x : rows.values) x = ToFloat(ToBF16(x));
  return rows;
}

void ExpectRowsGoInAndOut(Backend& b, DType weights) {
  const auto pages = b.NewKeyValuePages(kShape, 5, 4, weights);
  const std::vector<int32_t> table = {3, 0, 4}, other = {1, 2};
  const Rows rows = RandomRows(11, weights), others = RandomRows(7, weights);
  b.ImportRows(*pages, table, 0, 11, rows.keys, rows.values);
  b.ImportRows(*pages, other, 0, 7, others.keys, others.values);
  EXPECT_EQ(Export(b, *pages, table, 0, 11), rows);
  EXPECT_EQ(Export(b, *pages, other, 0, 7), others);
  // Some of them, over the borders of pages.
  const Rows middle = Export(b, *pages, table, 3, 6);
  EXPECT_EQ(middle.keys, Values(rows.keys.begin() + 3 * kWidth, rows.keys.begin() + 9 * kWidth));
  EXPECT_EQ(middle.values,
            Values(rows.values.begin() + 3 * kWidth, rows.values.begin() + 9 * kWidth));
  b.ImportRows(*pages, table, 2, 6, middle.keys, middle.values);
  EXPECT_EQ(Export(b, *pages, table, 2, 6), middle);
  EXPECT_EQ(Export(b, *pages, table, 8, 3).keys,
            Values(rows.keys.begin() + 8 * kWidth, rows.keys.end()));
  EXPECT_EQ(Export(b, *pages, other, 0, 7), others);
}

TEST(KeyValuePagesTest, RowsGoInAndOut) {
  for (const DType weights : kWeightTypes) {
    ExpectRowsGoInAndOut(*MakeCpuBackend({.threads = 1}), weights);
    ExpectRowsGoInAndOut(*MakeReferenceBackend(), weights);
  }
}

TEST(KeyValuePagesTest, BesideSmallWeightsRowsAreHalfAsLargeAndRounded) {
  const auto cpu = MakeCpuBackend({.threads = 1}), reference = MakeReferenceBackend();
  const auto wide = cpu->NewKeyValuePages(kShape, 1, 4, DType::kF32);
  const std::vector<int32_t> table = {0};
  const Rows rows = RandomRows(3, DType::kF32);
  for (const DType weights : {DType::kBF16, DType::kI8, DType::kI4}) {
    EXPECT_EQ(2 * cpu->NewKeyValuePages(kShape, 1, 4, weights)->bytes_per_page(),
              wide->bytes_per_page());
    for (Backend* b : {cpu.get(), reference.get()}) {
      const auto pages = b->NewKeyValuePages(kShape, 1, 4, weights);
      b->ImportRows(*pages, table, 0, 3, rows.keys, rows.values);
      EXPECT_EQ(Export(*b, *pages, table, 0, 3), RandomRows(3, weights));
    }
  }
}

void ExpectACopyIsThePage(Backend& b, DType weights) {
  const auto pages = b.NewKeyValuePages(kShape, 3, 4, weights);
  const std::vector<int32_t> from = {2}, to = {0}, last = {1};
  const Rows rows = RandomRows(4, weights), newer = RandomRows(2, weights);
  b.ImportRows(*pages, from, 0, 4, rows.keys, rows.values);
  b.CopyPage(*pages, 2, 0);
  EXPECT_EQ(Export(b, *pages, to, 0, 4), rows);
  b.ImportRows(*pages, to, 1, 2, newer.keys, newer.values);  // of the copy alone
  EXPECT_EQ(Export(b, *pages, from, 0, 4), rows);
  b.CopyPage(*pages, 2, 2);
  EXPECT_EQ(Export(b, *pages, from, 0, 4), rows);
  EXPECT_EQ(Export(b, *pages, last, 0, 4).keys, Values(4 * kWidth));
}

TEST(KeyValuePagesTest, ACopyIsThePage) {
  for (const DType weights : kWeightTypes) {
    ExpectACopyIsThePage(*MakeCpuBackend({.threads = 1}), weights);
    ExpectACopyIsThePage(*MakeReferenceBackend(), weights);
  }
}

// Keys are given as attention takes them: the query of a later token sees the same.
TEST(KeyValuePagesTest, AttentionGoesOnFromImportedRows) {
  constexpr AttentionShape kRotated = {.heads = 2, .head_dim = 8, .rotary_dim = 4};
  const auto b = MakeCpuBackend({.threads = 2});
  const auto pages = b->NewKeyValuePages(kRotated, 6, 8, DType::kF32);
  const OwnedTensor inv_freq = b->NewTensor(1, 2), tables = b->NewIndices(2, 3);
  b->Upload(Values{1, 0.1f}, inv_freq);
  const std::vector<int32_t> table = {0, 1, 2}, copy = {5, 3, 4};
  b->UploadIndices(std::vector<int32_t>{0, 1, 2, 5, 3, 4}, tables);
  const OwnedTensor qkv = b->NewTensor(24, 48), o = b->NewTensor(24, 16);
  b->Upload(RandomValues(24 * 48, 1), qkv);
  b->AttentionSequence(kRotated, qkv.view.Rows(0, 13), inv_freq, *pages, tables.view.Rows(0, 1),
                       {WholeSequences(1, 13), {}}, o.view.Rows(0, 13));
  Values keys(13 * 16), values(13 * 16);
  b->ExportRows(*pages, table, 0, 13, keys, values);
  b->ImportRows(*pages, copy, 0, 13, keys, values);
  std::vector<Values> outputs;
  for (int64_t i = 0; i < 2; ++i) {
    const SequencePart part = {.slot = 0, .tokens = 11, .start = 13};
    b->AttentionSequence(kRotated, qkv.view.Rows(13, 11), inv_freq, *pages, tables.view.Rows(i, 1),
                         {{&part, 1}, {}}, o.view.Rows(13, 11));
    outputs.emplace_back(11 * 16);
    b->Download(o.view.Rows(13, 11), outputs.back());
  }
  EXPECT_EQ(outputs[0], outputs[1]);
}

}  // namespace
}  // namespace hippodrome::cpu::key_value_pages_test
