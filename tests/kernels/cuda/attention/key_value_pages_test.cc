#include "kernels/cuda/attention/key_value_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hippodrome::cuda::key_value_pages_test {
namespace {

TEST(KeyValuePagesTest, HoldsKeysAndValuesOfEveryHead) {
  Device device;
  const AttentionShape shape = {.heads = 3, .head_dim = 5, .rotary_dim = 0};
  const PagedRows pages(device, shape, 4, 7, DType::kBF16);
  EXPECT_EQ(pages.pages(), 4);
  EXPECT_EQ(pages.page_tokens(), 7);
  EXPECT_EQ(pages.dtype(), DType::kBF16);
  EXPECT_EQ(pages.bytes_per_page(), 7 * 2 * 3 * 5 * 2);
  EXPECT_EQ(PagedRows(device, shape, 1, 7, DType::kF32).bytes_per_page(), 7 * 2 * 3 * 5 * 4);
}

TEST(KeyValuePagesTest, IsZeroAtFirst) {
  Device device;
  const PagedRows pages(device, {.heads = 2, .head_dim = 4}, 3, 8, DType::kF32);
  std::vector<char> bytes(static_cast<size_t>(3 * pages.bytes_per_page()), 1);
  device.Finish("test");
  ASSERT_EQ(cudaMemcpy(bytes.data(), pages.data(), bytes.size(), cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), static_cast<int64_t>(bytes.size()));
}

// Rows of a sequence whose pages are scattered, as a host sees them.
struct HostRows {
  std::vector<float> keys;
  std::vector<float> values;

  bool operator==(const HostRows&) const = default;
};

HostRows Export(Device& device, const PagedRows& pages, const std::vector<int32_t>& table,
                int64_t first, int64_t count) {
  const auto floats = static_cast<size_t>(count * pages.shape().heads * pages.shape().head_dim);
  HostRows rows = {std::vector<float>(floats, -7), std::vector<float>(floats, -7)};
  ExportRows(device, {pages, table, first, count}, rows.keys, rows.values);
  return rows;
}

void Import(Device& device, PagedRows& pages, const std::vector<int32_t>& table, int64_t first,
            const HostRows& rows) {
  const int64_t count =
      static_cast<int64_t>(rows.keys.size()) / (pages.shape().heads * pages.shape().head_dim);
  ImportRows(device, {pages, table, first, count}, rows.keys, rows.values);
}

// Numbers that bf16 holds, all different from their neighbours'.
HostRows CountedRows(int64_t count, int64_t d) {
  HostRows rows;
  for (int64_t i = 0; i < count * d; ++i) {
    rows.keys.push_back(static_cast<float>(i % 251));
    rows.values.push_back(-static_cast<float>(i % 241));
  }
  return rows;
}

// Rows [begin, end).
HostRows Some(const HostRows& rows, int64_t d, int64_t begin, int64_t end) {
  const auto some = [&](const std::vector<float>& all) {
    return std::vector<float>(all.begin() + begin * d, all.begin() + end * d);
  };
  return {some(rows.keys), some(rows.values)};
}

TEST(KeyValuePagesTest, RowsTravel) {
  const AttentionShape shape = {.heads = 3, .head_dim = 5, .rotary_dim = 0};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Device device;
    PagedRows pages(device, shape, 9, 7, dtype);
    const std::vector<int32_t> table = {6, 2, 8, 0};
    const HostRows all = CountedRows(28, 15);
    Import(device, pages, table, 0, all);
    for (auto [first, count] : {std::pair{0, 28}, {0, 1}, {6, 2}, {7, 7}, {13, 15}, {27, 1}}) {
      EXPECT_EQ(Export(device, pages, table, first, count), Some(all, 15, first, first + count))
          << first << " " << count;
    }
    EXPECT_EQ(Export(device, pages, table, 5, 0), HostRows());
    // A part of them, and the rest as it was.
    const HostRows zeros = {std::vector<float>(45), std::vector<float>(45)};
    Import(device, pages, table, 12, zeros);
    EXPECT_EQ(Export(device, pages, table, 12, 3), zeros);
    EXPECT_EQ(Export(device, pages, table, 0, 12), Some(all, 15, 0, 12));
    EXPECT_EQ(Export(device, pages, table, 15, 13), Some(all, 15, 15, 28));
    EXPECT_EQ(Export(device, pages, {1, 3, 4, 5, 7}, 0, 35),
              (HostRows{std::vector<float>(525), std::vector<float>(525)}));
  }
}

// More rows than go through scratch memory at once.
TEST(KeyValuePagesTest, ManyRowsTravel) {
  Device device;
  PagedRows pages(device, {.heads = 1, .head_dim = 2}, 40, 64, DType::kF32);
  std::vector<int32_t> table;
  for (int32_t i = 39; i >= 0; --i) table.push_back(i);
  const HostRows rows = CountedRows(2300, 2);
  Import(device, pages, table, 100, rows);
  EXPECT_EQ(Export(device, pages, table, 100, 2300), rows);
}

TEST(KeyValuePagesTest, ImportRoundsToNearestEven) {
  Device device;
  PagedRows pages(device, {.heads = 1, .head_dim = 2}, 1, 4, DType::kBF16);
  Import(device, pages, {0}, 1, {{1 + 0x1p-8f, 1 + 0x3p-8f}, {1 + 0x1.2p-8f, -3.0f}});
  EXPECT_EQ(Export(device, pages, {0}, 1, 1), (HostRows{{1, 1 + 0x1p-6f}, {1 + 0x1p-7f, -3.0f}}));
}

TEST(KeyValuePagesTest, CopiesPages) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Device device;
    PagedRows pages(device, {.heads = 3, .head_dim = 5}, 4, 7, dtype);
    const HostRows rows = CountedRows(7, 15);
    Import(device, pages, {2}, 0, rows);
    pages.CopyPage(device, 2, 1);
    pages.CopyPage(device, 2, 2);
    for (const int32_t page : {1, 2}) EXPECT_EQ(Export(device, pages, {page}, 0, 7), rows);
    for (const int32_t page : {0, 3}) {
      EXPECT_EQ(Export(device, pages, {page}, 0, 7).keys, std::vector<float>(105));
    }
  }
}

TEST(KeyValuePagesTest, MayHaveNoPages) {
  Device device;
  EXPECT_EQ(PagedRows(device, {.heads = 2, .head_dim = 4}, 0, 8, DType::kF32).pages(), 0);
}

}  // namespace
}  // namespace hippodrome::cuda::key_value_pages_test
