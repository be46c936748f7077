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

}  // namespace hippodrome::cpu
