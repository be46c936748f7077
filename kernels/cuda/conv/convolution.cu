#include "kernels/cuda/conv/convolution.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/convolution_view.cuh"

namespace hippodrome::cuda {
namespace {

// The second stage of the sums of dK: over chunks of sequences and over the columns of a head.

constexpr int kSumThreads = 256;

// sums[l, head] += sum of partial [chunks, lags, columns], by `group` neighbouring threads for each
// (l, head), the heads of a lag being neighbours.  group: a power of two <= 32.
__global__ void __launch_bounds__(kSumThreads)
    KernelGradientSumsKernel(ConvolutionSizes sizes, const float* partial, int chunks, int group,
                             double* sums) {
  const int64_t index = (int64_t{blockIdx.x} * kSumThreads + threadIdx.x) / group;
  const int lane = static_cast<int>(threadIdx.x) % group;
  const int64_t lag = index / sizes.heads;
  const int head_columns = sizes.columns / sizes.heads;
  const bool exists = lag < sizes.lags;
  double sum = 0;
  if (exists) {
    const int64_t first = lag * sizes.columns + index % sizes.heads * head_columns;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const float* row = partial + chunk * (int64_t{sizes.lags} * sizes.columns) + first;
      for (int c = lane; c < head_columns; c += group) sum += double{row[c]};
    }
  }
  for (int mask = group / 2; mask > 0; mask /= 2) sum += __shfl_xor_sync(kAllLanes, sum, mask);
  if (exists && lane == 0) sums[index] += sum;
}

// Up to here direct sums are taken. Not measured: with products of three convolutions for each
// point, 1.5 T, they do as many operations as four transforms of 512 points.
constexpr int64_t kLongestDirect = 256;

ConvolutionMethod Choose(const ConvolutionCall& call, ConvolutionMethod method,
                         size_t shared_bytes) {
  if (method != ConvolutionMethod::kFastest) return method;
  const bool transform = std::min(call.kernels.count(), call.tokens()) > kLongestDirect &&
                         CanConvolveByFft(call.tokens(), shared_bytes);
  return transform ? ConvolutionMethod::kFft : ConvolutionMethod::kDirect;
}

ConvolutionSizes Sizes(const ConvolutionCall& call, int64_t lags) {
  assert(call.u.rows == call.sequences * call.tokens());
  assert(call.u.cols % call.kernels.heads() == 0);
  return {.sequences = static_cast<int32_t>(call.sequences),
          .tokens = static_cast<int32_t>(call.tokens()),
          .columns = static_cast<int32_t>(call.u.cols),
          .heads = static_cast<int32_t>(call.kernels.heads()),
          .count = static_cast<int32_t>(call.kernels.count()),
          .lags = static_cast<int32_t>(lags),
          .backward = call.direction == Direction::kBackward};
}

const float* Run(Device& device, const ConvolutionTask& task, ConvolutionMethod method) {
  const bool direct =
      Choose(task.call, method, device.shared_bytes()) == ConvolutionMethod::kDirect;
  return direct ? ConvolveDirectly(device, task) : ConvolveByFft(device, task);
}

}  // namespace

ConvolutionKernels::ConvolutionKernels(Device& device, std::span<const float> kernels,
                                       int64_t heads)
    : heads_(heads),
      count_(std::ssize(kernels) / heads),
      values_(AllocateZeroed(device, kernels.size_bytes())) {
  std::vector<float> transposed(kernels.size());
  for (int64_t i = 0; i < std::ssize(kernels); ++i) {
    const int64_t to = i % count_ * heads_ + i / count_;
    transposed[static_cast<size_t>(to)] = kernels[static_cast<size_t>(i)];
  }
  CopyToDevice(device, transposed.data(), values_.get(), kernels.size_bytes());
}

int64_t ConvolutionKernels::bytes() const {
  int64_t bytes = heads_ * count_ * static_cast<int64_t>(sizeof(float));
  for (const auto& [points, tables] : tables_) bytes += tables.bytes;
  return bytes;
}

KernelGradientSums::KernelGradientSums(Device& device, int64_t heads, int64_t count)
    : heads_(heads),
      count_(count),
      values_(AllocateZeroed(device, static_cast<size_t>(heads * count) * sizeof(double))) {}

std::vector<double> KernelGradientSums::Take(Device& device) {
  constexpr const char* kName = "kernel_gradients";
  std::vector<double> sums(static_cast<size_t>(heads_ * count_));
  const size_t bytes = sums.size() * sizeof(double);
  device.Note(
      cudaMemcpyAsync(sums.data(), values(), bytes, cudaMemcpyDeviceToHost, device.stream()),
      kName);
  device.Note(cudaMemsetAsync(values(), 0, bytes, device.stream()), kName);
  device.Finish(kName);
  std::vector<double> transposed(sums.size());
  for (int64_t i = 0; i < std::ssize(sums); ++i) {
    transposed[static_cast<size_t>(i % heads_ * count_ + i / heads_)] =
        sums[static_cast<size_t>(i)];
  }
  return transposed;
}

void Convolve(Device& device, const ConvolutionCall& call, const Gradient& y,
              ConvolutionMethod method) {
  if (call.sequences == 0 || call.u.rows == 0) return;
  Run(device, {.call = call, .sizes = Sizes(call, 0), .dy = {}, .y = y, .du = {}}, method);
}

void ConvolveBackward(Device& device, const ConvolutionCall& call,
                      const ConvolutionGradients& gradients, KernelGradientSums& sums,
                      ConvolutionMethod method) {
  if (call.sequences == 0 || call.u.rows == 0) return;
  assert(gradients.dy.rows == call.u.rows && gradients.dy.cols == call.u.cols);
  assert(sums.heads() == call.kernels.heads());
  const ConvolutionTask task = {.call = call,
                                .sizes = Sizes(call, std::min(call.tokens(), sums.count())),
                                .dy = gradients.dy,
                                .y = {gradients.y},
                                .du = gradients.du};
  const float* partial = Run(device, task, method);
  const int64_t head_columns = task.sizes.columns / task.sizes.heads;
  const auto group = static_cast<int>(
      std::min<uint64_t>(kWarp, std::bit_ceil(static_cast<uint64_t>(head_columns))));
  const int64_t threads = int64_t{task.sizes.lags} * task.sizes.heads * group;
  Launch(device, "kernel_gradient_sums", KernelGradientSumsKernel,
         {.blocks = dim3(static_cast<unsigned>((threads + kSumThreads - 1) / kSumThreads)),
          .threads = dim3(kSumThreads)},
         task.sizes, partial, static_cast<int>(task.chunks()), group, sums.values());
}

}  // namespace hippodrome::cuda
