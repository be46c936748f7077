#include "engine/checkpoint/parameter_weights.h"

#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/stored_matrix.h"

namespace hippodrome {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace

absl::StatusOr<TensorView> ParameterWeights::Get(const std::string& name,
                                                 const std::vector<int64_t>& shape) {
  const Parameter* parameter = parameters_.Find(name);
  if (parameter == nullptr) return absl::NotFoundError("tensor \"" + name + "\" is missing");
  if (parameter->shape != shape) {
    return InvalidArgument("tensor \"" + name + "\" has shape " + ShapeText(parameter->shape) +
                           ", expected " + ShapeText(shape));
  }
  return TensorView{.name = name,
                    .dtype = DType::kF32,
                    .shape = shape,
                    .data = std::as_bytes(std::span(parameter->host))};
}

absl::Status AddParameters(const SafetensorsFile& file, Parameters& parameters) {
  HIPPODROME_RETURN_IF_ERROR(RefuseIntegers(file));
  for (const auto& [name, tensor] : file.tensors()) {
    if (tensor.elements() == 0 || tensor.dtype == DType::kI64 || tensor.dtype == DType::kI32) {
      continue;
    }
    HIPPODROME_ASSIGN_OR_RETURN(std::vector<float> values, ToFloats(tensor));
    parameters.Add(name, tensor.shape, std::move(values));
    file.Drop(tensor);
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
