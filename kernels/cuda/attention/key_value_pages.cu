#include "kernels/cuda/attention/key_value_pages.h"

#include <cassert>

namespace hippodrome::cuda {

PagedRows::PagedRows(Device& device, const AttentionShape& shape, int64_t pages,
                     int64_t page_tokens, DType dtype)
    : pages_(pages),
      page_tokens_(page_tokens),
      page_bytes_(page_tokens * 2 * shape.heads * shape.head_dim *
                  static_cast<int64_t>(SizeOf(dtype))),
      dtype_(dtype) {
  assert(pages >= 0 && page_tokens > 0);
  assert(dtype == DType::kBF16 || dtype == DType::kF32);
  memory_ = AllocateZeroed(device, static_cast<size_t>(pages_ * page_bytes_));
}

}  // namespace hippodrome::cuda
