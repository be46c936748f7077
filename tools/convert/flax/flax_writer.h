// A tree of arrays as flax.serialization writes it; flax_checkpoint.h has the format.
#ifndef HIPPODROME_TOOLS_CONVERT_FLAX_FLAX_WRITER_H_
#define HIPPODROME_TOOLS_CONVERT_FLAX_FLAX_WRITER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome {

struct FlaxTensor {
  std::string path;  // "a/b/kernel"
  TensorView tensor;
  bool transposed = false;  // written as [in, out] of a matrix [out, in]
};

// Writes the tree of `tensors`, keys in alphabetical order. `written` is called when the data of
// one are written, and not needed again. REQUIRES: floats; no path is the beginning of another.
// Errors: kInvalidArgument naming a tensor of more than 2^30 bytes, which Flax would store in
// chunks; those of PartialFile.
absl::Status WriteFlaxFile(const std::string& path, const std::vector<FlaxTensor>& tensors,
                           const std::function<void(const TensorView&)>& written);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_FLAX_FLAX_WRITER_H_
