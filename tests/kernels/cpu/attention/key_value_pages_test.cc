#include "kernels/cpu/attention/key_value_pages.h"

#include <gtest/gtest.h>

#include <set>

namespace hippodrome::cpu::key_value_pages_test {
namespace {

TEST(KeyValuePagesTest, EveryRowHasItsOwnMemory) {
  constexpr int64_t kHeads = 3;
  constexpr int64_t kHeadDim = 5;
  constexpr int64_t kTokens = 4;
  PagedRows pages({kHeads, kHeadDim, 0}, 2, kTokens);
  EXPECT_EQ(pages.pages(), 2);
  EXPECT_EQ(pages.page_tokens(), kTokens);
  EXPECT_EQ(pages.bytes_per_page(), kTokens * 2 * kHeads * kHeadDim * 4);

  const int32_t table[] = {1, 0};
  std::set<const float*> elements;
  for (int64_t position = 0; position < 2 * kTokens; ++position) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const float* key = pages.Key(table, position, head);
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
  const PagedRows pages({2, 3, 0}, 4, 4);
  const int32_t table[] = {2, 0, 3};
  const float* keys[9];
  pages.FindKeys(table, 1, 2, 9, keys);
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(keys[i], pages.Key(table, 2 + i, 1));
}

}  // namespace
}  // namespace hippodrome::cpu::key_value_pages_test
