// The shapes of a checkpoint's tensors, and how they are checked.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_SHAPE_MAP_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_SHAPE_MAP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome {

// Published tensor name -> shape.
using ShapeMap = std::map<std::string, std::vector<int64_t>>;

// The shape of a tensor that has `rank` dimensions, each of 1 to 2^24. Errors: kInvalidArgument
// naming the tensor that is missing or of another shape.
absl::StatusOr<std::vector<int64_t>> ShapeOf(const ShapeMap& shapes, const std::string& name,
                                             size_t rank);

// Removes every tensor of `specs` from `left`. Errors: kInvalidArgument naming the first one that
// is missing or of another shape.
absl::Status TakeShapes(const std::vector<TensorSpec>& specs, ShapeMap& left);

// Errors: kInvalidArgument naming a tensor of `left`, which is not part of `model` ("an H3 model").
absl::Status CheckNoneLeft(const ShapeMap& left, const std::string& model);

int64_t Elements(const TensorSpec& spec);

// The elements of all tensors but the frequencies of rotary attention, which are constants.
int64_t CountParameters(const std::vector<TensorSpec>& specs);

// Errors: kInvalidArgument when the tensors would take more than 4 times the file as F32: views of
// shared or repeated storage could make a small file fill the disk.
absl::Status CheckExpansion(const std::vector<TensorSpec>& specs, uint64_t file_bytes);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_SHAPE_MAP_H_
