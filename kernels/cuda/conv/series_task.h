// The methods behind series.h.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_SERIES_TASK_H_
#define HIPPODROME_KERNELS_CUDA_CONV_SERIES_TASK_H_

#include "kernels/cuda/conv/series.h"
#include "kernels/cuda/conv/series_view.cuh"

namespace hippodrome::cuda {

// A convolution, or its gradients where there is dy. Tensors without data are not wanted.
struct SeriesTask {
  const SeriesCall& call;
  SeriesSizes sizes;
  Tensor dy;
  Gradient y;
  Gradient du;

  int64_t chunks() const { return (call.sequences + kSeriesChunk - 1) / kSeriesChunk; }
  int64_t partial_floats() const { return chunks() * sizes.lags * sizes.columns; }
};

// Both give the sums of dK of each chunk, [chunks, lags, columns], in scratch memory, or null where
// there is no dy.
const float* SumSeriesDirectly(Device& device, const SeriesTask& task);
// REQUIRES: CanTransformSeries().
const float* TransformSeries(Device& device, const SeriesTask& task);

template <typename T>
SeriesRows<const T> InputRows(const Tensor& x) {
  return {static_cast<const T*>(x.data), x.stride};
}
inline SeriesResult Result(const Gradient& x) {
  return {{static_cast<float*>(x.tensor.data), x.tensor.stride}, x.add};
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_SERIES_TASK_H_
