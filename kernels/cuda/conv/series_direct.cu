#include "kernels/cuda/conv/series_direct.cuh"

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/series_task.h"

namespace hippodrome::cuda {
namespace {

Grid Blocks(const SeriesSizes& sizes, int64_t results, int64_t sequences) {
  return {.blocks = dim3(static_cast<unsigned>((sizes.columns + kWarp - 1) / kWarp),
                         static_cast<unsigned>((results + kDirectTile - 1) / kDirectTile),
                         static_cast<unsigned>(sequences)),
          .threads = dim3(kDirectThreads)};
}

template <typename T>
void Convolve(Device& device, const SeriesTask& task, const SeriesSizes& sizes, const Tensor& u,
              const Gradient& y) {
  if (y.tensor.data == nullptr) return;
  Launch(device, "series_direct", SeriesDirectKernel<T>,
         Blocks(sizes, sizes.tokens, sizes.sequences), sizes, InputRows<T>(u),
         task.call.kernels.values(), Result(y));
}

template <typename T>
const float* Sum(Device& device, const SeriesTask& task) {
  Convolve<T>(device, task, task.sizes, task.call.u, task.y);
  if (task.dy.data == nullptr) return nullptr;
  SeriesSizes reversed = task.sizes;
  reversed.backward = !reversed.backward;
  Convolve<float>(device, task, reversed, task.dy, task.du);
  auto* partial = static_cast<float*>(device.Scratch(
      ScratchUse::kSeriesSums, static_cast<size_t>(task.partial_floats()) * sizeof(float)));
  Launch(device, "series_direct_gradient", SeriesDirectGradientKernel<T>,
         Blocks(task.sizes, task.sizes.lags, task.chunks()), task.sizes, InputRows<T>(task.call.u),
         InputRows<float>(task.dy), partial);
  return partial;
}

}  // namespace

const float* SumSeriesDirectly(Device& device, const SeriesTask& task) {
  return task.call.u.dtype == DType::kBF16 ? Sum<BF16>(device, task) : Sum<float>(device, task);
}

}  // namespace hippodrome::cuda
