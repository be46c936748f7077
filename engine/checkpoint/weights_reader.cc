#include "engine/checkpoint/weights_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "engine/base/status.h"
#include "engine/checkpoint/finite_values.h"
#include "engine/checkpoint/stored_matrix.h"
#include "kernels/quantized_group.h"

namespace hippodrome {
namespace {

bool IsMatrixDtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

// A host matrix over `stored` to be packed as `dtype`; `copy` keeps the values where the file does
// not hold them aligned or in a type that backends read. Integers stay what they are only for
// weights of their own type.
absl::StatusOr<HostMatrix> ToHostMatrix(const StoredMatrix& stored, DType dtype,
                                        std::vector<float>& copy) {
  const void* data = stored.values.data.data();
  if (IsQuantized(stored.dtype)) {
    if (stored.dtype == dtype) {
      return HostMatrix{data, dtype, stored.rows, stored.cols, stored.scales.data()};
    }
    HIPPODROME_ASSIGN_OR_RETURN(copy, Dequantize(stored));
    return HostMatrix{copy.data(), DType::kF32, stored.rows, stored.cols};
  }
  if (IsMatrixDtype(stored.dtype) &&
      reinterpret_cast<uintptr_t>(data) % SizeOf(stored.dtype) == 0) {
    return HostMatrix{data, stored.dtype, stored.rows, stored.cols};
  }
  HIPPODROME_ASSIGN_OR_RETURN(copy, ToFloats(stored.values));
  return HostMatrix{copy.data(), DType::kF32, stored.rows, stored.cols};
}

std::vector<NamedPart> OfSize(const std::vector<std::string>& names, int64_t size) {
  std::vector<NamedPart> parts;
  for (const std::string& name : names) parts.push_back({name, size});
  return parts;
}

int64_t TotalSize(const std::vector<NamedPart>& parts) {
  int64_t size = 0;
  for (const NamedPart& part : parts) size += part.size;
  return size;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LinearWeights>> WeightsReader::Linear(
    const std::vector<std::string>& names, int64_t out, int64_t in) const {
  return Linear(OfSize(names, out), in);
}

absl::StatusOr<std::unique_ptr<LinearWeights>> WeightsReader::Linear(
    const std::vector<NamedPart>& parts, int64_t in) const {
  return Pack(parts, in, linear_dtype_);
}

absl::StatusOr<std::unique_ptr<LinearWeights>> WeightsReader::EmbeddingOrHead(
    const std::string& name, int64_t out, int64_t in) const {
  return Pack({{name, out}}, in, EmbeddingType(linear_dtype_));
}

absl::StatusOr<std::unique_ptr<LinearWeights>> WeightsReader::Pack(
    const std::vector<NamedPart>& parts, int64_t in, DType dtype) const {
  std::vector<StoredMatrix> stored(parts.size());
  std::vector<HostMatrix> matrices;
  std::vector<std::vector<float>> copies(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    HIPPODROME_ASSIGN_OR_RETURN(stored[i], GetMatrix(source_, parts[i].name, parts[i].size, in));
    HIPPODROME_ASSIGN_OR_RETURN(HostMatrix matrix, ToHostMatrix(stored[i], dtype, copies[i]));
    matrices.push_back(matrix);
  }
  std::unique_ptr<LinearWeights> packed = backend_.PackLinear(matrices, dtype);
  if (packed == nullptr) {
    return Unimplemented(fmt::format("{} has no products with {} weights, expected f32 or bf16",
                                     backend_.name(), WeightsName(linear_dtype_)));
  }
  for (const StoredMatrix& matrix : stored) {
    source_.Drop(matrix.values);
    if (IsQuantized(matrix.dtype)) source_.Drop(matrix.scale);
  }
  return packed;
}

absl::StatusOr<OwnedTensor> WeightsReader::Fill(OwnedTensor row,
                                                const std::vector<NamedPart>& parts) const {
  int64_t first = 0;
  for (const NamedPart& part : parts) {
    HIPPODROME_ASSIGN_OR_RETURN(const HostFloats values,
                                ReadFinite(source_, part.name, {part.size}));
    backend_.Upload(values, row.view.Cols(first, part.size));
    first += part.size;
  }
  return row;
}

absl::StatusOr<OwnedTensor> WeightsReader::Row(const std::vector<std::string>& names,
                                               int64_t size) const {
  const std::vector<NamedPart> parts = OfSize(names, size);
  return Fill(backend_.NewTensor(1, TotalSize(parts)), parts);
}

absl::StatusOr<OwnedTensor> WeightsReader::ActivationRow(const std::vector<std::string>& names,
                                                         int64_t size) const {
  return ActivationRow(OfSize(names, size));
}

absl::StatusOr<OwnedTensor> WeightsReader::ActivationRow(
    const std::vector<NamedPart>& parts) const {
  return Fill(backend_.NewActivations(1, TotalSize(parts), linear_dtype_), parts);
}

absl::StatusOr<OwnedTensor> WeightsReader::Matrix(const std::string& name, int64_t rows,
                                                  int64_t cols) const {
  HIPPODROME_ASSIGN_OR_RETURN(const HostFloats values, ReadFinite(source_, name, {rows, cols}));
  OwnedTensor matrix = backend_.NewTensor(rows, cols);
  backend_.Upload(values, matrix);
  return matrix;
}

}  // namespace hippodrome
