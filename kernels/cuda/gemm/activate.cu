#include "kernels/cuda/gemm/activate.h"

#include <algorithm>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/gemm/linear_epilogue.cuh"
#include "kernels/cuda/gemm/linear_epilogue_backward.cuh"

namespace hippodrome::cuda {
namespace {

template <typename Y>
struct ActivateArguments {
  const Y* x;  // rows of x_stride; may be epilogue.y
  int64_t x_stride;
  int cols;
  EpilogueArguments<Y> epilogue;
};

// One block per row and blockDim.x columns at a time.
template <typename Y>
__global__ void ActivateKernel(ActivateArguments<Y> a) {
  const int64_t row = blockIdx.x;
  for (int column = static_cast<int>(threadIdx.x); column < a.cols;
       column += static_cast<int>(blockDim.x)) {
    float x[1] = {Widen(a.x[row * a.x_stride + column])};
    Store(a.epilogue, x, LoadEpilogue<1>(a.epilogue, row, column), row, column);
  }
}

constexpr int64_t kMaxThreads = 256;

template <typename Y>
void ActivateRows(Device& device, const Tensor& x, const Epilogue& epilogue, const Tensor& y) {
  const ActivateArguments<Y> arguments = {.x = DeviceRow<Y>(x, 0),
                                          .x_stride = x.stride,
                                          .cols = static_cast<int>(y.cols),
                                          .epilogue = MakeEpilogue<Y>(epilogue, y)};
  const int64_t warps = (std::min(y.cols, kMaxThreads) + kWarp - 1) / kWarp;
  Launch(device, "activate", ActivateKernel<Y>,
         {.blocks = dim3(static_cast<unsigned>(y.rows)),
          .threads = dim3(static_cast<unsigned>(warps * kWarp))},
         arguments);
}

struct ActivateBackwardBody {
  Elements<const float> x;
  EpilogueBackward<float> epilogue;
  Elements<float> dx;  // or none; may be dy
  bool add;

  __device__ void operator()(int64_t row, int64_t column) const {
    const float dz = epilogue.Gradient(row, column, x.At(row, column));
    if (dx.data == nullptr) return;
    float& to = dx.At(row, column);
    to = add ? to + dz : dz;
  }
};

}  // namespace

void Activate(Device& device, Tensor x, const Epilogue& epilogue, Tensor y) {
  assert(x.dtype == y.dtype && x.rows == y.rows && x.cols == y.cols);
  assert(epilogue.bias.data == nullptr);
  if (y.rows == 0) return;
  if (y.dtype == DType::kBF16) {
    ActivateRows<BF16>(device, x, epilogue, y);
  } else {
    ActivateRows<float>(device, x, epilogue, y);
  }
}

void ActivateBackward(Device& device, Tensor x, const Epilogue& epilogue, Tensor dy,
                      const Gradient& dx, const Gradient& dgate) {
  assert(x.dtype == DType::kF32 && epilogue.bias.data == nullptr);
  ForEachElement(device, "activate_backward",
                 JoinedShape({x, dy, epilogue.gate, dx.tensor, dgate.tensor}),
                 ActivateBackwardBody{ElementsOf<const float>(x),
                                      MakeEpilogueBackward<float>(epilogue, dy, dgate),
                                      ElementsOf<float>(dx.tensor), dx.add});
}

}  // namespace hippodrome::cuda
