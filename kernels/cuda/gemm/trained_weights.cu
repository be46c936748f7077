#include "kernels/cuda/gemm/trained_weights.h"

#include "kernels/cuda/base/elementwise.h"
#include "kernels/cuda/base/transpose.h"

namespace hippodrome::cuda {
namespace {

Tensor MatrixOf(const PackedWeights& w) { return {w.data(), w.dtype(), w.out(), w.in(), w.in()}; }

}  // namespace

void PackTrainedLinear(Device& device, std::span<const Tensor> parts, const TrainedWeights& w) {
  const Tensor rows = MatrixOf(w);
  const Tensor columns = MatrixOf(w.transposed());
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    assert(part.cols == w.in());
    Copy(device, part, rows.Rows(begin, part.rows));
    Transpose(device, part, columns.Cols(begin, part.rows));
    begin += part.rows;
  }
  assert(begin == w.out());
}

}  // namespace hippodrome::cuda
