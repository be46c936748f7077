#include "engine/checkpoint/stored_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/checkpoint/finite_values.h"
#include "kernels/quantized_group.h"

namespace hippodrome {
namespace {

std::string ScaleName(const std::string& name) { return name + "_scale"; }

// The type of weights in tensors of `dtype`.
DType WeightsIn(DType dtype) { return dtype == DType::kU8 ? DType::kI4 : dtype; }

bool HasIntegers(const SafetensorsFile& file, const TensorView& tensor) {
  return IsQuantized(StoredType(file, tensor));
}

absl::Status GetScales(WeightsSource& source, StoredMatrix& matrix) {
  HIPPODROME_ASSIGN_OR_RETURN(
      matrix.scale, source.Get(ScaleName(matrix.values.name),
                               {matrix.rows, QuantizedGroups(matrix.cols, matrix.dtype)}));
  if (matrix.scale.dtype != DType::kBF16) {
    return InvalidArgument(fmt::format("tensor \"{}\" is {}, expected BF16",
                                       OneLine(matrix.scale.name), Name(matrix.scale.dtype)));
  }
  HIPPODROME_RETURN_IF_ERROR(CheckFinite(matrix.scale));
  matrix.scales.resize(static_cast<size_t>(matrix.scale.elements()));
  std::memcpy(matrix.scales.data(), matrix.scale.data.data(), matrix.scale.data.size());
  return absl::OkStatus();
}

// Of one row.
void Dequantize(const std::byte* row, const BF16* scales, DType dtype, std::span<float> values) {
  const auto group = static_cast<size_t>(QuantizedGroup(dtype));
  for (size_t k = 0; k < values.size(); ++k) {
    const int integer = dtype == DType::kI8
                            ? static_cast<int8_t>(row[k])
                            : UnpackInt4(static_cast<uint8_t>(row[k / 2]), k % 2 != 0);
    values[k] = ToFloat(scales[k / group]) * static_cast<float>(integer);
  }
}

// Of one group; integers in pairs start with a group.
void AppendIntegers(std::span<const int8_t> integers, DType weights,
                    std::vector<std::byte>& values) {
  if (weights == DType::kI8) {
    for (const int8_t integer : integers) values.push_back(static_cast<std::byte>(integer));
    return;
  }
  for (size_t k = 0; k < integers.size(); k += 2) {
    const int next = k + 1 < integers.size() ? integers[k + 1] : 0;
    values.push_back(static_cast<std::byte>(PackInt4(integers[k], next)));
  }
}

}  // namespace

absl::StatusOr<StoredMatrix> GetMatrix(WeightsSource& source, const std::string& name, int64_t rows,
                                       int64_t cols) {
  StoredMatrix matrix{.rows = rows, .cols = cols, .dtype = WeightsIn(source.TypeOf(name))};
  const int64_t stored_cols = matrix.dtype == DType::kI4 ? RowBytes(DType::kI4, cols) : cols;
  HIPPODROME_ASSIGN_OR_RETURN(matrix.values, source.Get(name, {rows, stored_cols}));
  if (IsQuantized(matrix.dtype)) {
    HIPPODROME_RETURN_IF_ERROR(GetScales(source, matrix));
  } else {
    HIPPODROME_RETURN_IF_ERROR(CheckFinite(matrix.values));
  }
  return matrix;
}

absl::StatusOr<std::vector<float>> Dequantize(const StoredMatrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.cols));
  const int64_t groups = QuantizedGroups(matrix.cols, matrix.dtype);
  for (int64_t r = 0; r < matrix.rows; ++r) {
    Dequantize(matrix.values.data.data() + r * RowBytes(matrix.dtype, matrix.cols),
               matrix.scales.data() + r * groups, matrix.dtype,
               std::span(values).subspan(static_cast<size_t>(r * matrix.cols),
                                         static_cast<size_t>(matrix.cols)));
  }
  HIPPODROME_RETURN_IF_ERROR(CheckFinite({.name = matrix.values.name,
                                          .dtype = DType::kF32,
                                          .shape = {matrix.rows, matrix.cols},
                                          .data = std::as_bytes(std::span(values))}));
  return values;
}

absl::StatusOr<DType> StoredWeights(const SafetensorsFile& file, const std::string& embedding) {
  const TensorView* tensor = file.Find(embedding);
  if (tensor == nullptr) return NotFound(file.path() + ": there is no tensor " + embedding);
  const bool int4 = std::ranges::any_of(file.tensors(), [&](const auto& named) {
    return named.second.dtype == DType::kU8 && HasIntegers(file, named.second);
  });
  if (int4) return DType::kI4;
  const bool known = std::ranges::find(kWeightTypes, tensor->dtype) != std::end(kWeightTypes);
  return known ? tensor->dtype : DType::kF32;
}

DType StoredType(const SafetensorsFile& file, const TensorView& values) {
  const DType integers = WeightsIn(values.dtype);
  const bool scaled = file.Find(ScaleName(values.name)) != nullptr;
  return IsQuantized(integers) && scaled ? integers : values.dtype;
}

int64_t CountParameters(const SafetensorsFile& file) {
  int64_t parameters = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    parameters += tensor.elements();
    if (!HasIntegers(file, tensor)) continue;
    if (tensor.dtype == DType::kU8) parameters += tensor.elements();
    parameters -= file.Find(ScaleName(name))->elements();
  }
  return parameters;
}

absl::Status RefuseIntegers(const SafetensorsFile& file) {
  for (const auto& [name, tensor] : file.tensors()) {
    if (!HasIntegers(file, tensor)) continue;
    return InvalidArgument(fmt::format("{}: tensor \"{}\" has {} weights, expected f32 or bf16",
                                       file.path(), OneLine(name),
                                       WeightsName(StoredType(file, tensor))));
  }
  return absl::OkStatus();
}

std::vector<TensorSpec> StoredSpecs(const TensorSpec& matrix) {
  if (!IsQuantized(matrix.dtype)) return {matrix};
  const int64_t rows = matrix.shape[0], cols = matrix.shape[1];
  const bool int4 = matrix.dtype == DType::kI4;
  return {{matrix.name, int4 ? DType::kU8 : DType::kI8, {rows, RowBytes(matrix.dtype, cols)}},
          {ScaleName(matrix.name), DType::kBF16, {rows, QuantizedGroups(cols, matrix.dtype)}}};
}

QuantizedRows QuantizeRows(std::span<const float> values, int64_t cols, DType weights) {
  QuantizedRows rows;
  int8_t integers[kInt8Group];
  while (!values.empty()) {
    std::span<const float> row = values.first(static_cast<size_t>(cols));
    values = values.subspan(row.size());
    while (!row.empty()) {
      const size_t count = std::min(row.size(), static_cast<size_t>(QuantizedGroup(weights)));
      rows.scales.push_back(QuantizeGroup(weights, row.first(count), integers));
      AppendIntegers(std::span(integers, count), weights, rows.values);
      row = row.subspan(count);
    }
  }
  return rows;
}

}  // namespace hippodrome
