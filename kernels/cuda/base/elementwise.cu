#include "kernels/cuda/base/elementwise.h"

#include "kernels/cuda/base/elements.cuh"

namespace hippodrome::cuda {
namespace {

struct FillBody {
  Elements<float> x;
  float value;
  __device__ void operator()(int64_t row, int64_t column) const { x.At(row, column) = value; }
};

template <typename X, typename Y>
struct CopyBody {
  Elements<const X> x;
  Elements<Y> y;
  __device__ void operator()(int64_t row, int64_t column) const {
    y.At(row, column) = FromFloat<Y>(Widen(x.At(row, column)));
  }
};

struct AddBody {
  Elements<const float> x;
  Elements<float> y;
  __device__ void operator()(int64_t row, int64_t column) const {
    y.At(row, column) += x.At(row, column);
  }
};

// average + rate (x - average): an average of equal values stays what they are.
struct AverageBody {
  Elements<const float> x;
  float rate;
  Elements<float> average;
  __device__ void operator()(int64_t row, int64_t column) const {
    const float old = average.At(row, column);
    average.At(row, column) = fmaf(rate, x.At(row, column) - old, old);
  }
};

template <typename X, typename Y>
void CopyTyped(Device& device, const Tensor& x, const Tensor& y) {
  ForEachElement(device, "copy", JoinedShape({x, y}),
                 CopyBody<X, Y>{ElementsOf<const X>(x), ElementsOf<Y>(y)});
}

template <typename X>
void CopyFrom(Device& device, const Tensor& x, const Tensor& y) {
  if (y.dtype == DType::kBF16) {
    CopyTyped<X, BF16>(device, x, y);
  } else {
    CopyTyped<X, float>(device, x, y);
  }
}

}  // namespace

void Fill(Device& device, float value, Tensor x) {
  ForEachElement(device, "fill", JoinedShape({x}), FillBody{ElementsOf<float>(x), value});
}

void Copy(Device& device, Tensor x, Tensor y) {
  if (x.dtype == DType::kBF16) {
    CopyFrom<BF16>(device, x, y);
  } else {
    CopyFrom<float>(device, x, y);
  }
}

void Add(Device& device, Tensor x, Tensor y) {
  ForEachElement(device, "add", JoinedShape({x, y}),
                 AddBody{ElementsOf<const float>(x), ElementsOf<float>(y)});
}

void MovingAverage(Device& device, Tensor x, double decay, Tensor average) {
  ForEachElement(device, "moving_average", JoinedShape({x, average}),
                 AverageBody{ElementsOf<const float>(x), static_cast<float>(1 - decay),
                             ElementsOf<float>(average)});
}

}  // namespace hippodrome::cuda
