// The tensors of a checkpoint under the names of the published code.
#ifndef HIPPODROME_TOOLS_CONVERT_TENSOR_READER_H_
#define HIPPODROME_TOOLS_CONVERT_TENSOR_READER_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace hippodrome {

// One thread at a time.
class TensorReader {
 public:
  virtual ~TensorReader() = default;
  // Elements [first, first + out.size()) of the tensor, row by row. REQUIRES: they exist. Errors:
  // kInvalidArgument for a damaged file.
  virtual absl::Status Read(const std::string& name, uint64_t first, std::span<float> out) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TENSOR_READER_H_
