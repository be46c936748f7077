#include <algorithm>
#include <bit>
#include <cassert>
#include <vector>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/sequence_parts.h"
#include "kernels/cuda/conv/fft_tables.h"
#include "kernels/cuda/h3/h3_fft.cuh"
#include "kernels/cuda/h3/h3_prefill.h"
#include "kernels/cuda/h3/h3_weights.h"

namespace hippodrome::cuda {
namespace {

// The spectra of the kernels of an H3 layer for right-angle transforms of L points,
//   S_f = 1/L sum_{l < L} K[l] exp(i pi l / 2L) exp(-2 pi i f l / L),
// K[l] = Re sum_n w_n a_n^l, D added to K[0]: geometric series. With c = exp(i pi (1 - 4 f) / 2L),
// whose power c^L is i, a mode and its conjugate give
//   1/2 w (1 - i a^L) / (1 - a c) + 1/2 w* (1 - i a*^L) / (1 - a* c).
// Everything is in double, from the modes as the recurrence has them.

constexpr int kSpectrumThreads = 256;
constexpr int kSpectrumModes = 32;  // at most

// One mode of the layer: what the sum over frequencies divides by 1 - a c and by 1 - a* c.
struct SpectrumMode {
  ComplexDouble a;
  ComplexDouble numerator;
  ComplexDouble conjugate_numerator;
};

__device__ inline SpectrumMode MakeSpectrumMode(float2 mode, float2 weight, int points) {
  const ComplexDouble a = ToDouble(mode);
  const ComplexDouble w = {0.5 * weight.x, 0.5 * weight.y};
  const ComplexDouble end = Power(a, points);
  return {a, w * ComplexDouble{1 + end.im, -end.re},
          Conjugate(w) * ComplexDouble{1 - end.im, -end.re}};
}

// numerator / (1 - a c)
__device__ inline ComplexDouble GeometricSeries(ComplexDouble numerator, ComplexDouble a,
                                                ComplexDouble c) {
  const ComplexDouble ratio = a * c;
  return numerator / ComplexDouble{1 - ratio.re, -ratio.im};
}

// Head blockIdx.y, positions from kSpectrumThreads * blockIdx.x on. REQUIRES: head_dim 1.
__global__ void __launch_bounds__(kSpectrumThreads)
    H3SpectraKernel(H3View layer, int points, float2* spectra) {
  auto* modes = reinterpret_cast<SpectrumMode*>(SharedMemory());
  const int head = blockIdx.y;
  const int thread = threadIdx.x;
  if (thread < layer.modes) {
    const int i = head * layer.modes + thread;
    modes[thread] = MakeSpectrumMode(layer.a[i], layer.w[i], points);
  }
  __syncthreads();
  const int position = blockIdx.x * kSpectrumThreads + thread;
  ComplexDouble c;
  sincospi((1 - 4.0 * FftFrequency(points, position)) / (2.0 * points), &c.im, &c.re);
  ComplexDouble sum = {layer.skip[head], 0};
  for (int n = 0; n < layer.modes; ++n) {
    const SpectrumMode& mode = modes[n];
    const ComplexDouble first = GeometricSeries(mode.numerator, mode.a, c);
    const ComplexDouble second = GeometricSeries(mode.conjugate_numerator, Conjugate(mode.a), c);
    sum.re += first.re + second.re;
    sum.im += first.im + second.im;
  }
  spectra[int64_t{head} * points + FftSpectrumOffset(points, position)] =
      ToFloat2({sum.re / points, sum.im / points});
}

constexpr int kShortestTransform = 256;
static_assert(kShortestTransform % kSpectrumThreads == 0 && kMostModes <= kSpectrumModes);

// What the kernel reads beside the layer, in one piece of memory: [heads, points] spectra, then
// twiddles, then turns.
std::shared_ptr<void> MakeSpectra(Device& device, const H3View& layer, int points) {
  std::vector<std::complex<float>> tables = FftTwiddles(points);
  const std::vector<std::complex<float>> turns = RightAngleTurns(points);
  tables.insert(tables.end(), turns.begin(), turns.end());
  const size_t values = static_cast<size_t>(layer.heads) * static_cast<size_t>(points);
  std::shared_ptr<void> memory = AllocateZeroed(device, (values + tables.size()) * sizeof(float2));
  auto* spectra = static_cast<float2*>(memory.get());
  CopyToDevice(device, tables.data(), spectra + values, tables.size() * sizeof(float2));
  Launch(device, "h3_spectra", H3SpectraKernel,
         {.blocks = dim3(static_cast<unsigned>(points / kSpectrumThreads),
                         static_cast<unsigned>(layer.heads)),
          .threads = dim3(kSpectrumThreads),
          .shared_bytes = kSpectrumModes * sizeof(SpectrumMode)},
         layer, points, spectra);
  return memory;
}

template <typename T, int kPoints>
void Start(Device& device, const H3SequenceCall& call) {
  using Block = H3FftBlock<kPoints>;
  const H3View& layer = call.constants.view();
  const float2* spectra =
      call.constants.Spectra(kPoints, [&] { return MakeSpectra(device, layer, kPoints); });
  const float2* twiddles = spectra + int64_t{layer.heads} * kPoints;
  const H3FftArguments<T> arguments = {
      .layer = layer,
      .state = call.state.view<T>(),
      .qkv = static_cast<const T*>(call.qkv.data),
      .qkv_stride = call.qkv.stride,
      .o = static_cast<T*>(call.o.data),
      .o_stride = call.o.stride,
      .parts = CopyParts(device, call.parts),
      .tables = {.spectra = reinterpret_cast<const float4*>(spectra),
                 .twiddles = reinterpret_cast<const float4*>(twiddles),
                 .turns = twiddles + FftTwiddleCount(kPoints)},
  };
  const int blocks = (layer.d_model + Block::kChannels - 1) / Block::kChannels;
  Launch(device, "h3_fft", H3FftKernel<T, kPoints>,
         {.blocks = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(call.parts.size())),
          .threads = dim3(Block::kThreads),
          .shared_bytes = Block::kSharedBytes},
         arguments);
}

template <typename T>
void StartShortest(Device& device, const H3SequenceCall& call) {
  WithTransform<kShortestTransform>(LongestPart(call.parts), [&](auto points) {
    Start<T, decltype(points)::value>(device, call);
  });
}

// Of the block of the shortest transform that holds the tokens.
size_t SharedBytes(int64_t tokens) {
  return WithTransform<kShortestTransform>(
      tokens, [](auto points) { return H3FftBlock<decltype(points)::value>::kSharedBytes; });
}

}  // namespace

bool CanTransform(const H3PrefillWeights& constants, int64_t start, int64_t tokens,
                  size_t shared_bytes) {
  const H3View& layer = constants.view();
  return layer.head_dim == 1 && layer.taps <= kMostTaps && layer.modes <= kMostModes &&
         start == 0 && tokens <= kLongestBlockTransform && SharedBytes(tokens) <= shared_bytes;
}

int64_t TransformPoints(int64_t tokens) {
  return WithTransform<kShortestTransform>(
      tokens, [](auto points) -> int64_t { return decltype(points)::value; });
}

void H3Fft(Device& device, const H3SequenceCall& call) {
  assert(std::all_of(call.parts.begin(), call.parts.end(), [&](const SequencePart& part) {
    return CanTransform(call.constants, part.start, part.tokens, device.shared_bytes());
  }));
  assert(call.qkv.cols == 3 * int64_t{call.constants.view().d_model});
  if (call.constants.activations() == DType::kBF16) {
    StartShortest<BF16>(device, call);
  } else {
    StartShortest<float>(device, call);
  }
}

}  // namespace hippodrome::cuda
