// Convolutions and their gradients as plain sums. A thread has eight neighbouring results of one
// column, so that it loads two numbers for eight products; neighbouring threads have neighbouring
// columns.
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/convolution_view.cuh"

namespace hippodrome::cuda {
namespace {

constexpr int kDirectThreads = 128;
constexpr int kDirectResults = 8;  // of a thread
// Results of a block, for 32 columns.
constexpr int kDirectTile = kDirectThreads / kWarp * kDirectResults;

// The last eight values of a column, the latest first.
struct SlidingWindow {
  __device__ void Push(float value) {
#pragma unroll
    for (int e = kDirectResults - 1; e > 0; --e) values[e] = values[e - 1];
    values[0] = value;
  }
  float values[kDirectResults] = {};
};

// Where a thread is: the first of its eight results, and its column.
struct DirectPlace {
  __device__ DirectPlace()
      : column(static_cast<int>(blockIdx.x * kWarp + threadIdx.x % kWarp)),
        first(static_cast<int>(blockIdx.y) * kDirectTile +
              static_cast<int>(threadIdx.x) / kWarp * kDirectResults) {}
  int column;
  int first;
};

// Blocks: (32 columns, kDirectTile times, sequences). kernels: [count, heads].
template <typename T>
__global__ void __launch_bounds__(kDirectThreads)
    DirectConvKernel(ConvolutionSizes sizes, SequenceRows<const T> u, const float* kernels,
                     SequenceResult y) {
  const DirectPlace place;
  if (place.column >= sizes.columns || place.first >= sizes.tokens) return;
  const int64_t sequence = blockIdx.z;
  const auto load = [&](int t) {
    return t >= 0 ? Widen(*u.At(sizes, sequence, t, place.column)) : 0.0f;
  };
  const int results = min(kDirectResults, sizes.tokens - place.first);
  SlidingWindow window;
  for (int e = 0; e < kDirectResults; ++e) window.Push(e < results ? load(place.first + e) : 0.0f);
  // The latest time comes first.
  float sums[kDirectResults] = {};
  const float* kernel = kernels + sizes.Head(place.column);
  const int count = min(sizes.count, place.first + kDirectResults);
#pragma unroll 4
  for (int l = 0; l < count; ++l, kernel += sizes.heads) {
    // window.values[e]: time first + 7 - e - l.
#pragma unroll
    for (int e = 0; e < kDirectResults; ++e) sums[e] = fmaf(*kernel, window.values[e], sums[e]);
#pragma unroll
    for (int e = 0; e < kDirectResults - 1; ++e) window.values[e] = window.values[e + 1];
    window.values[kDirectResults - 1] = load(place.first - l - 1);
  }
#pragma unroll
  for (int e = 0; e < kDirectResults; ++e) {
    const int t = place.first + kDirectResults - 1 - e;
    if (t < sizes.tokens) y.Store(sizes, sequence, t, place.column, sums[e]);
  }
}

// dK of one chunk of sequences, for every column: partial [chunks, lags, columns]. Blocks: (32
// columns, kDirectTile lags, chunks).
template <typename T>
__global__ void __launch_bounds__(kDirectThreads)
    DirectConvGradientKernel(ConvolutionSizes sizes, SequenceRows<const T> u,
                             SequenceRows<const float> dy, float* partial) {
  const DirectPlace place;
  if (place.column >= sizes.columns || place.first >= sizes.lags) return;
  const int begin = static_cast<int>(blockIdx.z) * kConvolutionChunk;
  const int end = min(begin + kConvolutionChunk, sizes.sequences);
  float sums[kDirectResults] = {};
  for (int sequence = begin; sequence < end; ++sequence) {
    SlidingWindow window;  // u_{t - first}, u_{t - first - 1}, ...
#pragma unroll 4
    for (int t = place.first; t < sizes.tokens; ++t) {
      window.Push(Widen(*u.At(sizes, sequence, t - place.first, place.column)));
      const float g = *dy.At(sizes, sequence, t, place.column);
#pragma unroll
      for (int e = 0; e < kDirectResults; ++e) sums[e] = fmaf(g, window.values[e], sums[e]);
    }
  }
#pragma unroll
  for (int e = 0; e < kDirectResults; ++e) {
    const int lag = place.first + e;
    if (lag >= sizes.lags) continue;
    partial[(int64_t{blockIdx.z} * sizes.lags + lag) * sizes.columns + place.column] = sums[e];
  }
}

Grid Blocks(const ConvolutionSizes& sizes, int64_t results, int64_t sequences) {
  return {.blocks = dim3(static_cast<unsigned>((sizes.columns + kWarp - 1) / kWarp),
                         static_cast<unsigned>((results + kDirectTile - 1) / kDirectTile),
                         static_cast<unsigned>(sequences)),
          .threads = dim3(kDirectThreads)};
}

template <typename T>
void Convolve(Device& device, const ConvolutionTask& task, const ConvolutionSizes& sizes,
              const Tensor& u, const Gradient& y) {
  if (y.tensor.data == nullptr) return;
  Launch(device, "direct_conv", DirectConvKernel<T>, Blocks(sizes, sizes.tokens, sizes.sequences),
         sizes, InputRows<T>(u), task.call.kernels.values(), Result(y));
}

template <typename T>
const float* Sum(Device& device, const ConvolutionTask& task) {
  Convolve<T>(device, task, task.sizes, task.call.u, task.y);
  if (task.dy.data == nullptr) return nullptr;
  ConvolutionSizes reversed = task.sizes;
  reversed.backward = !reversed.backward;
  Convolve<float>(device, task, reversed, task.dy, task.du);
  auto* partial = static_cast<float*>(device.Scratch(
      ScratchUse::kKernelGradients, static_cast<size_t>(task.partial_floats()) * sizeof(float)));
  Launch(device, "direct_conv_gradient", DirectConvGradientKernel<T>,
         Blocks(task.sizes, task.sizes.lags, task.chunks()), task.sizes, InputRows<T>(task.call.u),
         InputRows<float>(task.dy), partial);
  return partial;
}

}  // namespace

const float* ConvolveDirectly(Device& device, const ConvolutionTask& task) {
  return task.call.u.dtype == DType::kBF16 ? Sum<BF16>(device, task) : Sum<float>(device, task);
}

}  // namespace hippodrome::cuda
