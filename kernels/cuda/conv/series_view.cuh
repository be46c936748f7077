// What the kernels of series.h are given.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_SERIES_VIEW_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_SERIES_VIEW_CUH_

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/conv/series.h"

namespace hippodrome::cuda {

// Sequences whose sums are taken together: constant, so that sums depend on nothing else.
inline constexpr int kSeriesChunk = 2;

struct SeriesSizes {
  int32_t sequences;
  int32_t tokens;
  int32_t columns;
  int32_t heads;
  int32_t count;  // points of each kernel
  int32_t lags;   // l of dK[l]
  bool backward;

  __device__ int Head(int column) const { return column / (columns / heads); }
};

// A matrix of sequences; data null: none.
template <typename T>
struct SeriesRows {
  T* data;
  int64_t stride;

  // Time t of a column of a sequence; times run from the last token to the first in a convolution
  // that is backward.
  __device__ T* At(const SeriesSizes& sizes, int64_t sequence, int t, int column) const {
    const int token = sizes.backward ? sizes.tokens - 1 - t : t;
    return data + (sequence * sizes.tokens + token) * stride + column;
  }
};

// A result, which replaces what is there or is added to it.
struct SeriesResult {
  SeriesRows<float> rows;
  bool add;

  __device__ void Store(const SeriesSizes& sizes, int64_t sequence, int t, int column,
                        float value) const {
    float* to = rows.At(sizes, sequence, t, column);
    *to = add ? *to + value : value;
  }
};

// The methods behind series.h.

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

#endif  // HIPPODROME_KERNELS_CUDA_CONV_SERIES_VIEW_CUH_
