// The key/value rows of one attention layer.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_KEY_VALUE_PAGES_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_KEY_VALUE_PAGES_H_

#include <algorithm>
#include <cassert>
#include <memory>

#include "kernels/backend.h"

namespace hippodrome::cpu {

// [page][head][k | v][token][head_dim] of f32 or bf16, so that the rows of one head lie side by
// side; keys are stored rotated. Memory is resident once written. T is float or BF16, as dtype()
// says.
class PagedRows final : public KeyValuePages {
 public:
  // REQUIRES: pages >= 0, page_tokens > 0; dtype is kF32 or kBF16.
  PagedRows(const AttentionShape& shape, int64_t pages, int64_t page_tokens, DType dtype);

  DType dtype() const { return dtype_; }
  int64_t pages() const override { return pages_; }
  int64_t page_tokens() const override { return page_tokens_; }
  int64_t bytes_per_page() const override {
    return page_tokens_ * 2 * heads_ * head_dim_ * static_cast<int64_t>(SizeOf(dtype_));
  }
  // Rows are replaced by those of the same position.
  int64_t rewind_block() const override { return page_tokens_; }

  // The key of `position` in the sequence whose pages are `page_table`. The keys of the following
  // positions in the same page follow it.
  template <typename T>
  T* Key(const int32_t* page_table, int64_t position, int64_t head) const {
    assert(sizeof(T) == SizeOf(dtype_));
    const int64_t page = page_table[position / page_tokens_];
    const int64_t token = position % page_tokens_;
    return static_cast<T*>(memory_.get()) +
           ((page * heads_ + head) * 2 * page_tokens_ + token) * head_dim_;
  }
  // Rounds the key and the value of a position, head_dim floats each, and keeps them.
  void Store(const int32_t* page_table, int64_t position, int64_t head, const float* key,
             const float* value) const;
  // bytes_per_page() bytes.
  char* Page(int32_t page) const {
    return static_cast<char*>(memory_.get()) + page * bytes_per_page();
  }
  // As Backend::ExportRows(), ImportRows() and CopyPage().
  void Export(const int32_t* page_table, int64_t first, int64_t count, float* keys,
              float* values) const;
  void Import(const int32_t* page_table, int64_t first, int64_t count, const float* keys,
              const float* values);
  void Copy(int32_t from, int32_t to);

  // From a key to its value.
  int64_t value_offset() const { return page_tokens_ * head_dim_; }

  // The keys of positions [begin, begin + count).
  template <typename T>
  void FindKeys(const int32_t* page_table, int64_t head, int64_t begin, int64_t count,
                const T** keys) const {
    for (int64_t i = 0; i < count;) {
      const T* key = Key<T>(page_table, begin + i, head);
      const int64_t left_in_page = page_tokens_ - (begin + i) % page_tokens_;
      const int64_t end = std::min(count, i + left_in_page);
      for (; i < end; ++i, key += head_dim_) keys[i] = key;
    }
  }

 private:
  int64_t pages_;
  int64_t page_tokens_;
  int64_t heads_;
  int64_t head_dim_;
  DType dtype_;
  std::shared_ptr<void> memory_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_KEY_VALUE_PAGES_H_
