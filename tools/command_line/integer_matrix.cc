#include "tools/command_line/integer_matrix.h"

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<IntegerMatrix> ReadIntegerMatrix(const SafetensorsFile& file,
                                                const std::string& name) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr) return NotFound(file.path() + ": there is no tensor " + name);
  if (tensor->shape.size() != 2) {
    return InvalidArgument(file.path() + ": " + name + " has " +
                           std::to_string(tensor->shape.size()) + " dimensions, expected [B, L]");
  }
  const absl::StatusOr<std::vector<int64_t>> integers = ToIntegers(*tensor);
  if (!integers.ok()) {
    return InvalidArgument(file.path() + ": " + Message(integers.status()));
  }
  IntegerMatrix matrix{.rows = tensor->shape[0], .cols = tensor->shape[1]};
  for (const int64_t value : *integers) {
    if (value < 0 || value > INT32_MAX) {
      const auto at = static_cast<int64_t>(matrix.values.size());
      return InvalidArgument(file.path() + ": " + name + "[" + std::to_string(at / matrix.cols) +
                             ", " + std::to_string(at % matrix.cols) + "] is " +
                             std::to_string(value) + ", expected an integer in [0, 2^31)");
    }
    matrix.values.push_back(static_cast<int32_t>(value));
  }
  return matrix;
}

}  // namespace hippodrome
