// Streams tensors into a .safetensors file.
#ifndef HIPPODROME_TOOLS_CONVERT_WRITE_TENSORS_H_
#define HIPPODROME_TOOLS_CONVERT_WRITE_TENSORS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/convert/tensor_reader.h"

namespace hippodrome {

// Called with bytes written so far and in all.
using ConvertProgress = std::function<void(int64_t done, int64_t total)>;

int64_t Elements(const TensorSpec& spec);

// Errors: kInvalidArgument when the tensors would take more than 4 times the file as F32: views of
// shared or repeated storage could make a small file fill the disk.
absl::Status CheckExpansion(const std::vector<TensorSpec>& specs, uint64_t file_bytes);

// Writes `specs` (F32 or BF16) in their order through buffers of under 64 MiB.
absl::Status WriteTensors(TensorReader& reader, const std::vector<TensorSpec>& specs,
                          const std::string& path, const ConvertProgress& progress);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_WRITE_TENSORS_H_
