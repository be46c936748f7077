// Integers that users give to a model in files.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_INTEGER_MATRIX_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_INTEGER_MATRIX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome {

struct IntegerMatrix {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<int32_t> values;  // [rows, cols]
};

// The tensor `name`, I64 or I32 [rows, cols], whose values must be in [0, 2^31). Errors: kNotFound,
// or kInvalidArgument naming file, tensor, what was found and expected.
absl::StatusOr<IntegerMatrix> ReadIntegerMatrix(const SafetensorsFile& file,
                                                const std::string& name);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_INTEGER_MATRIX_H_
