// Attention: causal over paged key/value rows, one token at a time, and of all tokens to all.
#ifndef HIPPODROME_TESTS_REFERENCE_ATTENTION_H_
#define HIPPODROME_TESTS_REFERENCE_ATTENTION_H_

#include <vector>

#include "kernels/backend.h"

namespace hippodrome::reference {

class AttentionPages final : public KeyValuePages {
 public:
  AttentionPages(const AttentionShape& shape, int64_t pages, int64_t page_tokens, DType rounded_to)
      : d(shape.heads * shape.head_dim),
        page_count(pages),
        tokens_per_page(page_tokens),
        dtype(rounded_to),
        k(pages * page_tokens * d),
        v(pages * page_tokens * d) {}

  int64_t pages() const override { return page_count; }
  int64_t page_tokens() const override { return tokens_per_page; }
  int64_t bytes_per_page() const override {
    return tokens_per_page * 2 * d * static_cast<int64_t>(sizeof(double));
  }

  // Of a position, in k and v.
  int64_t Row(std::span<const int32_t> page_table, int64_t position) const {
    const int64_t page = page_table[static_cast<size_t>(position / tokens_per_page)];
    return (page * tokens_per_page + position % tokens_per_page) * d;
  }

  int64_t d;
  int64_t page_count;
  int64_t tokens_per_page;
  DType dtype;            // to which k and v are rounded
  std::vector<double> k;  // [page, token, d]
  std::vector<double> v;
};

// Stores the rotated key and the value of `position`, rounded, and attends to positions
// shape.FirstSeen(position)..position. page_table: from the page of table_start on; qkv: [1, 3 d];
// o: [1, d].
void AttendOne(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, AttentionPages& pages,
               Tensor page_table, int64_t table_start, int64_t position, Tensor o);

// Rotates the first rotary_dim dimensions of one head, GPT-NeoX halves:
// o1 = x1 cos - x2 sin, o2 = x1 sin + x2 cos at angle position * inv_freq. Position -p undoes p.
void Rotate(const AttentionShape& shape, Tensor inv_freq, int64_t position, double* x);

// softmax of scores, in place.
void Softmax(std::vector<double>& score);

// Every token of one sequence attends to all with a mask of 1.  qkv: [T, 3 d]; mask: [1, T];
// o: [T, d].
void AttendAll(const AttentionShape& shape, Tensor qkv, Tensor mask, Tensor o);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_ATTENTION_H_
