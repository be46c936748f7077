#include "kernels/cuda/rows/layer_norm_backward.cuh"

#include "kernels/cuda/base/column_sums.cuh"
#include "kernels/cuda/rows/layer_norm.h"

namespace hippodrome::cuda {
namespace {

// One block for each row of x.
Grid RowGrid(const Tensor& x) {
  const int64_t warps =
      std::min<int64_t>((x.cols + kWarp - 1) / kWarp, kNormBackwardThreads / kWarp);
  return {.blocks = dim3(static_cast<unsigned>(x.rows)),
          .threads = dim3(static_cast<unsigned>(warps * kWarp))};
}

}  // namespace

void LayerNormBackward(Device& device, Tensor x, Tensor gamma, double epsilon, Tensor dy,
                       const Gradient& dx, Tensor dgamma, Tensor dbeta) {
  assert(x.rows == dy.rows && x.cols == dy.cols && gamma.cols == x.cols);
  if (x.rows == 0) return;
  auto* statistics = static_cast<NormStatistics*>(device.Scratch(
      ScratchUse::kNormStatistics, static_cast<size_t>(x.rows) * sizeof(NormStatistics)));
  const auto x_elements = ElementsOf<const float>(x);
  const auto dy_elements = ElementsOf<const float>(dy);
  Launch(device, "norm_statistics", NormStatisticsKernel, RowGrid(x), x_elements,
         static_cast<int>(x.cols), static_cast<float>(epsilon), statistics);
  // dx may replace dy, so it comes last.
  if (dgamma.data != nullptr) {
    AddColumnSums(device, "norm_gamma", {x.rows, x.cols},
                  GammaTerm{x_elements, statistics, dy_elements}, dgamma);
  }
  if (dbeta.data != nullptr) {
    AddColumnSums(device, "norm_beta", {x.rows, x.cols}, BetaTerm{dy_elements}, dbeta);
  }
  if (dx.tensor.data == nullptr) return;
  Launch(device, "norm_backward", NormBackwardKernel, RowGrid(x),
         NormBackwardArguments{.x = x_elements,
                               .gamma = DeviceRow<float>(gamma, 0),
                               .statistics = statistics,
                               .dy = dy_elements,
                               .d = static_cast<int>(x.cols),
                               .dx = ElementsOf<float>(dx.tensor),
                               .add = dx.add});
}

}  // namespace hippodrome::cuda
