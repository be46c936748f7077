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

TEST(KeyValuePagesTest, MayHaveNoPages) {
  Device device;
  EXPECT_EQ(PagedRows(device, {.heads = 2, .head_dim = 4}, 0, 8, DType::kF32).pages(), 0);
}

}  // namespace
}  // namespace hippodrome::cuda::key_value_pages_test
