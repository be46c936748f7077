// Matrices of weights as files hold them: floats, or integers of 8 or 4 bits with scales.
//
// A matrix "X" [out, in] of kI8 is the tensors
//   "X"        I8 [out, in]            the integers
//   "X_scale"  BF16 [out, G]           the scales of G = QuantizedGroups(in) groups
// and of kI4 the same but for
//   "X"        U8 [out, ceil(in / 2)]  two integers in a byte, as PackInt4() packs neighbours
// kernels/quantized_group.h says what they mean. Any integers and any finite scales are taken.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_STORED_MATRIX_H_
#define HIPPODROME_ENGINE_CHECKPOINT_STORED_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weights_source.h"
#include "kernels/dtype.h"

namespace hippodrome {

struct StoredMatrix {
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;  // kI8 or kI4 of integers, else that of the tensor
  TensorView values;
  TensorView scale;          // of integers
  std::vector<BF16> scales;  // its elements
};

// The matrix `name` [rows, cols] in the form in which `source` has it. Errors name the tensor, what
// it is and what was expected; also one whose values or scales are not all finite is refused.
absl::StatusOr<StoredMatrix> GetMatrix(WeightsSource& source, const std::string& name, int64_t rows,
                                       int64_t cols);

// scale * integer of each element. Errors: one that is not finite. REQUIRES: a quantised matrix.
absl::StatusOr<std::vector<float>> Dequantize(const StoredMatrix& matrix);

// The type of weights that a file has: kI4 where a matrix is stored so, else that of the tensor
// `embedding`, which stands for all, or kF32. Errors: kNotFound without that tensor.
absl::StatusOr<DType> StoredWeights(const SafetensorsFile& file, const std::string& embedding);

// The type of a matrix of which `file` has the tensor `values`: kI8 or kI4 of integers with scales,
// else that of the tensor.
DType StoredType(const SafetensorsFile& file, const TensorView& values);

// How many parameters a file has. A scale is none.
int64_t CountParameters(const SafetensorsFile& file);

// kInvalidArgument, naming one, if a file has matrices of integers.
absl::Status RefuseIntegers(const SafetensorsFile& file);

// The tensors that hold `matrix`, whose dtype may be kI8 or kI4: one, or values and scales.
std::vector<TensorSpec> StoredSpecs(const TensorSpec& matrix);

// Whole rows of a matrix in the form of StoredSpecs(): the bytes of their values, and their scales.
struct QuantizedRows {
  std::vector<std::byte> values;
  std::vector<BF16> scales;
};
// REQUIRES: IsQuantized(weights), finite values.
QuantizedRows QuantizeRows(std::span<const float> values, int64_t cols, DType weights);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CHECKPOINT_STORED_MATRIX_H_
