#include "kernels/cuda/rows/dropout.h"

#include "kernels/cuda/base/elements.cuh"
#include "kernels/dropout_bits.h"

namespace hippodrome::cuda {
namespace {

struct DropBody {
  uint64_t seed;
  uint32_t threshold;
  float scale;
  Elements<float> x;

  __device__ void operator()(int64_t row, int64_t column) const {
    const uint32_t bits = DropoutBits(DropoutRowOf(seed, row), static_cast<uint32_t>(column));
    float& value = x.At(row, column);
    value = bits < threshold ? 0.0f : value * scale;
  }
};

}  // namespace

void Drop(Device& device, double p, uint64_t seed, Tensor x) {
  assert(p >= 0 && p < 1);
  if (p == 0) return;
  // The bits go by row and column: rows are not joined.
  ForEachElement(
      device, "drop", {x.rows, x.cols},
      DropBody{seed, DropoutThreshold(p), static_cast<float>(1 / (1 - p)), ElementsOf<float>(x)});
}

}  // namespace hippodrome::cuda
