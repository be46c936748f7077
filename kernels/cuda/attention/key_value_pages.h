// Keys and values of one attention layer on a device.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_KEY_VALUE_PAGES_H_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_KEY_VALUE_PAGES_H_

#include <memory>
#include <span>

#include "kernels/backend.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// [page][head][k | v][token][head_dim], kBF16 or kF32: a head's keys of a page are one tile.
class PagedRows final : public KeyValuePages {
 public:
  PagedRows(Device& device, const AttentionShape& shape, int64_t pages, int64_t page_tokens,
            DType dtype);

  int64_t pages() const override { return pages_; }
  int64_t page_tokens() const override { return page_tokens_; }
  int64_t bytes_per_page() const override { return page_bytes_; }
  const AttentionShape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  void* data() const { return memory_.get(); }

  void CopyPage(Device& device, int32_t from, int32_t to);

 private:
  AttentionShape shape_;
  int64_t pages_;
  int64_t page_tokens_;
  int64_t page_bytes_;
  DType dtype_;
  std::shared_ptr<void> memory_;
};

// What Backend::ExportRows and Backend::ImportRows are given beside host memory.
struct PagedSpan {
  const PagedRows& pages;
  std::span<const int32_t> page_table;
  int64_t first;
  int64_t count;
};

// The contracts of Backend::ExportRows and Backend::ImportRows. Values are rounded to the pages'
// type, which changes none that was exported from such.
void ExportRows(Device& device, const PagedSpan& rows, std::span<float> keys,
                std::span<float> values);
void ImportRows(Device& device, const PagedSpan& rows, std::span<const float> keys,
                std::span<const float> values);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_KEY_VALUE_PAGES_H_
