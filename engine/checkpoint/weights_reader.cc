#include "engine/checkpoint/weights_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "engine/base/status.h"
#include "engine/checkpoint/finite_values.h"

namespace hippodrome {
namespace {

bool IsMatrixDtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

// A host matrix over `tensor`; `copy` keeps the values where the file does not hold them aligned or
// in a dtype that backends read.
absl::StatusOr<HostMatrix> ToHostMatrix(const TensorView& tensor, std::vector<float>& copy) {
  HostMatrix matrix{tensor.data.data(), tensor.dtype, tensor.shape[0], tensor.shape[1]};
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.data.data()) % SizeOf(tensor.dtype) == 0;
  if (!IsMatrixDtype(tensor.dtype) || !aligned) {
    HIPPODROME_ASSIGN_OR_RETURN(copy, ToFloats(tensor));
    matrix.data = copy.data();
    matrix.dtype = DType::kF32;
  }
  return matrix;
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
  std::vector<TensorView> tensors;
  std::vector<HostMatrix> matrices;
  std::vector<std::vector<float>> copies(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    HIPPODROME_ASSIGN_OR_RETURN(TensorView tensor, source_.Get(parts[i].name, {parts[i].size, in}));
    HIPPODROME_RETURN_IF_ERROR(CheckFinite(tensor));
    HIPPODROME_ASSIGN_OR_RETURN(HostMatrix matrix, ToHostMatrix(tensor, copies[i]));
    matrices.push_back(matrix);
    tensors.push_back(tensor);
  }
  std::unique_ptr<LinearWeights> packed = backend_.PackLinear(matrices, linear_dtype_);
  if (packed == nullptr) {
    return Unimplemented(fmt::format("{} has no products with {} weights, expected f32 or bf16",
                                     backend_.name(), WeightsName(linear_dtype_)));
  }
  for (const TensorView& tensor : tensors) source_.Drop(tensor);
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
