#include "kernels/cuda/gemm/linear_finish.h"

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/gemm/linear_finish.cuh"

namespace hippodrome::cuda {
namespace {

template <typename Y>
void Finish(Device& device, const Tensor& sums, const Epilogue& epilogue, const Tensor& y) {
  constexpr int64_t kBlockColumns = kFinishThreads * kFinishColumns;
  Launch(device, "linear_finish", FinishLinearKernel<Y>,
         {.blocks = dim3(static_cast<unsigned>(y.rows),
                         static_cast<unsigned>((y.cols + kBlockColumns - 1) / kBlockColumns)),
          .threads = dim3(kFinishThreads)},
         DeviceRow<float>(sums, 0), sums.stride, static_cast<int>(y.cols),
         MakeEpilogue<Y>(epilogue, y));
}

}  // namespace

void FinishLinear(Device& device, Tensor sums, const Epilogue& epilogue, Tensor y) {
  assert(sums.rows == y.rows && sums.cols == y.cols);
  if (y.rows == 0) return;
  if (y.dtype == DType::kBF16) {
    Finish<BF16>(device, sums, epilogue, y);
  } else {
    Finish<float>(device, sums, epilogue, y);
  }
}

}  // namespace hippodrome::cuda
