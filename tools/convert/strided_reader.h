// Row-major f32 elements of a strided view, in bounded memory.
#ifndef HIPPODROME_TOOLS_CONVERT_STRIDED_READER_H_
#define HIPPODROME_TOOLS_CONVERT_STRIDED_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "tools/convert/torch/storage_reader.h"
#include "tools/convert/torch/torch_state_dict.h"

namespace hippodrome {

// The types that weights have: F32, F16, BF16, F64.
bool IsFloat(DType dtype);

// Converts `raw` (elements of such a type at any alignment) into `out`.
void ConvertToFloat(DType dtype, std::span<const std::byte> raw, std::span<float> out);

class StridedReader {
 public:
  // `storages` must outlive the reader. Holds one buffer of at most `buffer_bytes`.
  StridedReader(StorageReader& storages, size_t buffer_bytes)
      : storages_(storages), buffer_bytes_(buffer_bytes) {}

  // out[i] = element first + i of `tensor`. REQUIRES: a float dtype; the range lies in the tensor.
  absl::Status Read(const TorchTensor& tensor, uint64_t first, std::span<float> out);

 private:
  absl::Status ReadContiguous(const TorchTensor& tensor, uint64_t first, std::span<float> out);
  absl::Status ReadStrided(const TorchTensor& tensor, uint64_t first, std::span<float> out);
  // Loads storage elements [begin, begin + count) into buffer_.
  absl::Status Load(const TorchStorage& storage, uint64_t begin, uint64_t count);

  StorageReader& storages_;
  size_t buffer_bytes_;
  std::vector<std::byte> buffer_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_STRIDED_READER_H_
