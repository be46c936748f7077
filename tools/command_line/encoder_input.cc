#include "tools/command_line/encoder_input.h"

#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/command_line/integer_matrix.h"

namespace hippodrome {
namespace {

std::string Shape(const IntegerMatrix& matrix) {
  return "[" + std::to_string(matrix.rows) + ", " + std::to_string(matrix.cols) + "]";
}

// The tensor `name`, of the shape of `ids`; `fallback` everywhere where the file has none.
absl::StatusOr<std::vector<int32_t>> ReadBeside(const SafetensorsFile& file,
                                                const std::string& name, const IntegerMatrix& ids,
                                                int32_t fallback) {
  if (file.Find(name) == nullptr) return std::vector<int32_t>(ids.values.size(), fallback);
  HIPPODROME_ASSIGN_OR_RETURN(IntegerMatrix matrix, ReadIntegerMatrix(file, name));
  if (matrix.rows != ids.rows || matrix.cols != ids.cols) {
    return InvalidArgument(file.path() + ": " + name + " is " + Shape(matrix) +
                           ", expected the shape of input_ids, " + Shape(ids));
  }
  return std::move(matrix.values);
}

}  // namespace

absl::StatusOr<EncoderInputs> ReadEncoderInputs(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::Open(path));
  HIPPODROME_ASSIGN_OR_RETURN(IntegerMatrix ids, ReadIntegerMatrix(*file, "input_ids"));
  EncoderInputs inputs{.batch = ids.rows, .length = ids.cols};
  HIPPODROME_ASSIGN_OR_RETURN(inputs.types, ReadBeside(*file, "token_type_ids", ids, 0));
  HIPPODROME_ASSIGN_OR_RETURN(inputs.mask, ReadBeside(*file, "attention_mask", ids, 1));
  inputs.ids = std::move(ids.values);
  return inputs;
}

EncoderInputs OneEncoderInput(std::vector<int32_t> ids) {
  const size_t length = ids.size();
  return {.batch = 1,
          .length = static_cast<int64_t>(length),
          .ids = std::move(ids),
          .types = std::vector<int32_t>(length, 0),
          .mask = std::vector<int32_t>(length, 1)};
}

}  // namespace hippodrome
