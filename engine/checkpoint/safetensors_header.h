// The JSON header of a safetensors file.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_SAFETENSORS_HEADER_H_
#define HIPPODROME_ENGINE_CHECKPOINT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"

namespace hippodrome {

// Longest header, in bytes, that is read or written: 100 MB, as in the published implementation.
inline constexpr uint64_t kLongestSafetensorsHeader = 100'000'000;

// What the header says about one tensor, unchecked against the data.
struct SafetensorsEntry {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // each >= 0
  uint64_t begin = 0;          // bytes from the start of the data
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Takes memory in proportion to `json`, whatever it contains, and no recursion. Errors:
// kInvalidArgument naming the tensor: not JSON, unknown dtype, a duplicate name, a missing or
// unknown field, more than 262144 tensors or 16 dimensions.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json);

// Bytes of a tensor. Errors: kInvalidArgument when they do not fit into int64_t.
absl::StatusOr<uint64_t> TensorBytes(DType dtype, const std::vector<int64_t>& shape);

// "[2, 3]".
std::string DimensionsText(const std::vector<int64_t>& shape);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CHECKPOINT_SAFETENSORS_HEADER_H_
