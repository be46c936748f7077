#include "kernels/cpu/attention/key_value_pages.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {

PagedRows::PagedRows(const AttentionShape& shape, int64_t pages, int64_t page_tokens, DType dtype)
    : pages_(pages),
      page_tokens_(page_tokens),
      heads_(shape.heads),
      head_dim_(shape.head_dim),
      dtype_(dtype) {
  assert(pages >= 0 && page_tokens > 0);
  assert(dtype == DType::kF32 || dtype == DType::kBF16);
  memory_ = AllocateZeroed(static_cast<size_t>(pages_ * bytes_per_page()));
}

void PagedRows::Store(const int32_t* page_table, int64_t position, int64_t head, const float* key,
                      const float* value) const {
  if (dtype_ == DType::kF32) {
    float* to = Key<float>(page_table, position, head);
    std::copy_n(key, head_dim_, to);
    std::copy_n(value, head_dim_, to + value_offset());
  } else {
    BF16* to = Key<BF16>(page_table, position, head);
    std::transform(key, key + head_dim_, to, ToBF16);
    std::transform(value, value + head_dim_, to + value_offset(), ToBF16);
  }
}

void PagedRows::Export(const int32_t* page_table, int64_t first, int64_t count, float* keys,
                       float* values) const {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t head = 0; head < heads_; ++head) {
      const int64_t at = (i * heads_ + head) * head_dim_;
      if (dtype_ == DType::kF32) {
        const float* key = Key<float>(page_table, first + i, head);
        std::copy_n(key, head_dim_, keys + at);
        std::copy_n(key + value_offset(), head_dim_, values + at);
      } else {
        const BF16* key = Key<BF16>(page_table, first + i, head);
        std::transform(key, key + head_dim_, keys + at, ToFloat);
        std::transform(key + value_offset(), key + value_offset() + head_dim_, values + at,
                       ToFloat);
      }
    }
  }
}

void PagedRows::Import(const int32_t* page_table, int64_t first, int64_t count, const float* keys,
                       const float* values) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t head = 0; head < heads_; ++head) {
      const int64_t at = (i * heads_ + head) * head_dim_;
      Store(page_table, first + i, head, keys + at, values + at);
    }
  }
}

void PagedRows::Copy(int32_t from, int32_t to) {
  assert(from >= 0 && from < pages_ && to >= 0 && to < pages_);
  if (from != to) std::copy_n(Page(from), bytes_per_page(), Page(to));
}

}  // namespace hippodrome::cpu
