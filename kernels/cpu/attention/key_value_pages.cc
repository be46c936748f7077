#include "kernels/cpu/attention/key_value_pages.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {

PagedRows::PagedRows(const AttentionShape& shape, int64_t pages, int64_t page_tokens)
    : pages_(pages), page_tokens_(page_tokens), heads_(shape.heads), head_dim_(shape.head_dim) {
  assert(pages >= 0 && page_tokens > 0);
  memory_ = AllocateZeroed(static_cast<size_t>(pages_ * bytes_per_page()));
}

void PagedRows::FindKeys(const int32_t* page_table, int64_t head, int64_t begin, int64_t count,
                         const float** keys) const {
  for (int64_t i = 0; i < count;) {
    const float* key = Key(page_table, begin + i, head);
    const int64_t left_in_page = page_tokens_ - (begin + i) % page_tokens_;
    const int64_t end = std::min(count, i + left_in_page);
    for (; i < end; ++i, key += head_dim_) keys[i] = key;
  }
}

void PagedRows::Export(const int32_t* page_table, int64_t first, int64_t count, float* keys,
                       float* values) const {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t head = 0; head < heads_; ++head) {
      const float* key = Key(page_table, first + i, head);
      const int64_t at = (i * heads_ + head) * head_dim_;
      std::copy_n(key, head_dim_, keys + at);
      std::copy_n(key + value_offset(), head_dim_, values + at);
    }
  }
}

void PagedRows::Import(const int32_t* page_table, int64_t first, int64_t count, const float* keys,
                       const float* values) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t head = 0; head < heads_; ++head) {
      float* key = Key(page_table, first + i, head);
      const int64_t at = (i * heads_ + head) * head_dim_;
      std::copy_n(keys + at, head_dim_, key);
      std::copy_n(values + at, head_dim_, key + value_offset());
    }
  }
}

void PagedRows::Copy(int32_t from, int32_t to) {
  assert(from >= 0 && from < pages_ && to >= 0 && to < pages_);
  if (from == to) return;
  std::copy_n(Key(&from, 0, 0), 2 * heads_ * page_tokens_ * head_dim_, Key(&to, 0, 0));
}

}  // namespace hippodrome::cpu
