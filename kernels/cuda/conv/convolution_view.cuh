// What the kernels of convolution.h are given.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_CONVOLUTION_VIEW_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_CONVOLUTION_VIEW_CUH_

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/conv/convolution.h"

namespace hippodrome::cuda {

// Sequences whose sums are taken together: constant, so that sums depend on nothing else.
inline constexpr int kConvolutionChunk = 2;

struct ConvolutionSizes {
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
struct SequenceRows {
  T* data;
  int64_t stride;

  // Time t of a column of a sequence; times run from the last token to the first in a convolution
  // that is backward.
  __device__ T* At(const ConvolutionSizes& sizes, int64_t sequence, int t, int column) const {
    const int token = sizes.backward ? sizes.tokens - 1 - t : t;
    return data + (sequence * sizes.tokens + token) * stride + column;
  }
};

// A result, which replaces what is there or is added to it.
struct SequenceResult {
  SequenceRows<float> rows;
  bool add;

  __device__ void Store(const ConvolutionSizes& sizes, int64_t sequence, int t, int column,
                        float value) const {
    float* to = rows.At(sizes, sequence, t, column);
    *to = add ? *to + value : value;
  }
};

// The methods behind convolution.h.

// A convolution, or its gradients where there is dy. Tensors without data are not wanted.
struct ConvolutionTask {
  const ConvolutionCall& call;
  ConvolutionSizes sizes;
  Tensor dy;
  Gradient y;
  Gradient du;

  int64_t chunks() const { return (call.sequences + kConvolutionChunk - 1) / kConvolutionChunk; }
  int64_t partial_floats() const { return chunks() * sizes.lags * sizes.columns; }
};

// Both give the sums of dK of each chunk, [chunks, lags, columns], in scratch memory, or null where
// there is no dy.
const float* ConvolveDirectly(Device& device, const ConvolutionTask& task);
// REQUIRES: CanConvolveByFft().
const float* ConvolveByFft(Device& device, const ConvolutionTask& task);

template <typename T>
SequenceRows<const T> InputRows(const Tensor& x) {
  return {static_cast<const T*>(x.data), x.stride};
}
inline SequenceResult Result(const Gradient& x) {
  return {{static_cast<float*>(x.tensor.data), x.tensor.stride}, x.add};
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_CONVOLUTION_VIEW_CUH_
