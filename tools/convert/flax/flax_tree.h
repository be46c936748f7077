// The arrays of a Flax file, without their values.
#ifndef HIPPODROME_TOOLS_CONVERT_FLAX_FLAX_TREE_H_
#define HIPPODROME_TOOLS_CONVERT_FLAX_FLAX_TREE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "tools/convert/random_access_file.h"

namespace hippodrome {

struct FlaxArray {
  std::string name;  // "a/b/kernel"
  std::vector<int64_t> shape;
  std::string type;            // "float32"
  std::optional<DType> dtype;  // when it is one of floats; then the bytes fit the shape
  uint64_t elements = 0;
  uint64_t offset = 0;  // of its bytes in the file
};

// In the order of the file. Errors: see OpenFlaxCheckpoint().
absl::StatusOr<std::vector<FlaxArray>> ReadFlaxTree(const RandomAccessFile& file);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_FLAX_FLAX_TREE_H_
