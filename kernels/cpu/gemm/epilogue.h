// What follows the sums of a tile: bias, activation, gate, residual, store; and what leads from the
// gradient of a product's output to that of z = x W^T + bias.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_EPILOGUE_H_
#define HIPPODROME_KERNELS_CPU_GEMM_EPILOGUE_H_

#include <cstdint>

#include "kernels/backend.h"

namespace hippodrome::cpu {

// The rows x cols corner of an output that one tile of sums covers.
struct EpilogueArguments {
  const float* sums;  // [rows][kPanelColumns]
  int64_t rows;
  int64_t cols;       // <= kPanelColumns, or any number of a single row
  const float* bias;  // [cols], or null
  Epilogue::Activation activation;
  const float* gate;  // rows of gate_stride, or null; may be y
  int64_t gate_stride;
  const float* residual;  // rows of residual_stride, or null; may be y
  int64_t residual_stride;
  float* y;  // rows of y_stride
  int64_t y_stride;
};

// What `epilogue` means for sums of the rows from `row` and the columns from `column` of y; results
// replace the sums where y is not of kF32.
EpilogueArguments EpilogueOfTile(const Epilogue& epilogue, const Tensor& y, float* sums,
                                 int64_t row, int64_t rows, int64_t column, int64_t cols);

// Asks for the cache lines of that corner, which a product will write and read when its sums are
// complete. Of product inputs of kI8: `column` begins a group.
void FetchTile(const Epilogue& epilogue, const Tensor& y, int64_t row, int64_t rows, int64_t column,
               int64_t cols);

// Writes that corner of y, of kF32 or kBF16: there sums are rounded where they are in the cache.
void FinishTile(const Epilogue& epilogue, const Tensor& y, float* sums, int64_t row, int64_t rows,
                int64_t column, int64_t cols);

// y = activation(sums + bias) * gate + residual. GELU errs by a few ulp of its value, and for x < 0
// by about x^2 ulp more, where the value itself is as small as exp(-x^2 / 2).
void ApplyEpilogue(const EpilogueArguments& arguments);

// One row of `cols` values.
struct EpilogueBackwardArguments {
  int64_t cols;
  Epilogue::Activation activation;
  const float* bias;  // added to z first, or null
  const float* gate;  // or null
  const float* dy;
  float* z;      // replaced by dz
  float* dgate;  // or null; may be dy
  bool add_to_dgate;
};

// With the bias in z: dz = dy * gate * activation'(z);  dgate = dy * activation(z), or added to
// what is there. Errors by a few ulp of |activation'| + 1, or as ApplyEpilogue(). activation'(0) =
// 0 for ReLU.
void ApplyEpilogueBackward(const EpilogueBackwardArguments& arguments);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_EPILOGUE_H_
