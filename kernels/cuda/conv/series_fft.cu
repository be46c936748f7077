#include "kernels/cuda/conv/series_fft.cuh"

#include <algorithm>
#include <cassert>
#include <complex>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/series_task.h"
#include "kernels/cuda/conv/with_transform.h"

namespace hippodrome::cuda {
namespace {

constexpr int kShortestTransform = 512;
// More points would need more threads than have enough registers.
constexpr int kLongestTransform = 8192;

// use(std::integral_constant<int, points>()) with the shortest transform that holds the tokens.
template <typename Use>
auto WithSeriesTransform(int64_t tokens, const Use& use) {
  return WithTransform<kShortestTransform>(tokens, [&](auto points) {
    return use(std::integral_constant<int, std::min<int>(points, kLongestTransform)>());
  });
}

int64_t ColumnBlocks(int64_t columns, int block_columns) {
  return (columns + block_columns - 1) / block_columns;
}

// In one piece of memory: [heads, points] spectra, then twiddles, then turns.
template <int kPoints>
RightAngleTables View(const SeriesKernels& kernels, const void* memory) {
  const auto* spectra = static_cast<const float2*>(memory);
  const float2* twiddles = spectra + kernels.heads() * kPoints;
  return {.spectra = reinterpret_cast<const float4*>(spectra),
          .twiddles = reinterpret_cast<const float4*>(twiddles),
          .turns = twiddles + FftTwiddleCount(kPoints)};
}

template <int kPoints>
SeriesTables MakeTables(Device& device, const SeriesKernels& kernels) {
  using Block = SeriesFftBlock<kPoints>;
  std::vector<std::complex<float>> tables = FftTwiddles(kPoints);
  const std::vector<std::complex<float>> turns = RightAngleTurns(kPoints);
  tables.insert(tables.end(), turns.begin(), turns.end());
  const auto values = static_cast<size_t>(kernels.heads() * kPoints);
  const size_t bytes = (values + tables.size()) * sizeof(float2);
  std::shared_ptr<void> memory = AllocateZeroed(device, bytes);
  auto* spectra = static_cast<float2*>(memory.get());
  CopyToDevice(device, tables.data(), spectra + values, tables.size() * sizeof(float2));
  const SeriesSizes sizes = {
      .sequences = 1,
      .tokens = static_cast<int32_t>(std::min<int64_t>(kernels.count(), kPoints)),
      .columns = static_cast<int32_t>(kernels.heads()),
      .heads = static_cast<int32_t>(kernels.heads()),
      .count = static_cast<int32_t>(kernels.count()),
      .lags = 0,
      .backward = false};
  Launch(device, "series_spectra", SeriesSpectraKernel<kPoints>,
         {.blocks = dim3(static_cast<unsigned>(ColumnBlocks(kernels.heads(), Block::kColumns))),
          .threads = dim3(Block::kThreads),
          .shared_bytes = Block::kSharedBytes},
         sizes, View<kPoints>(kernels, spectra), kernels.values(),
         reinterpret_cast<float4*>(spectra));
  return {std::move(memory), static_cast<int64_t>(bytes)};
}

template <typename T, int kPoints>
const float* Start(Device& device, const SeriesTask& task) {
  using Block = SeriesFftBlock<kPoints>;
  const SeriesKernels& kernels = task.call.kernels;
  const void* tables =
      kernels.Tables(kPoints, [&] { return MakeTables<kPoints>(device, kernels); });
  const int64_t blocks = ColumnBlocks(task.sizes.columns, Block::kColumns);
  float4* spectra = nullptr;
  float* partial = nullptr;
  if (task.dy.data != nullptr) {
    const int64_t sums = task.chunks() * blocks * Block::kColumns * (kPoints / 2);
    const size_t bytes = static_cast<size_t>(sums) * sizeof(float4) +
                         static_cast<size_t>(task.partial_floats()) * sizeof(float);
    spectra = static_cast<float4*>(device.Scratch(ScratchUse::kSeriesSums, bytes));
    partial = reinterpret_cast<float*>(spectra + sums);
  }
  const SeriesFftArguments<T> arguments = {.sizes = task.sizes,
                                           .tables = View<kPoints>(kernels, tables),
                                           .u = InputRows<T>(task.call.u),
                                           .dy = InputRows<float>(task.dy),
                                           .y = Result(task.y),
                                           .du = Result(task.du),
                                           .spectra = spectra,
                                           .partial = partial};
  Launch(device, "series_fft", SeriesFftKernel<T, kPoints>,
         {.blocks = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(task.chunks())),
          .threads = dim3(Block::kThreads),
          .shared_bytes = Block::kSharedBytes},
         arguments);
  return partial;
}

}  // namespace

bool CanTransformSeries(int64_t tokens, size_t shared_bytes) {
  return tokens <= kLongestTransform && WithSeriesTransform(tokens, [&](auto points) {
           return SeriesFftBlock<decltype(points)::value>::kSharedBytes <= shared_bytes;
         });
}

const float* TransformSeries(Device& device, const SeriesTask& task) {
  assert(CanTransformSeries(task.call.tokens(), device.shared_bytes()));
  return WithSeriesTransform(task.call.tokens(), [&](auto points) {
    constexpr int kPoints = decltype(points)::value;
    return task.call.u.dtype == DType::kBF16 ? Start<BF16, kPoints>(device, task)
                                             : Start<float, kPoints>(device, task);
  });
}

}  // namespace hippodrome::cuda
