#include "kernels/cuda/h3/h3_fft.cuh"

#include <algorithm>
#include <bit>
#include <cassert>
#include <vector>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/with_transform.h"
#include "kernels/cuda/h3/h3_sequence.h"
#include "kernels/cuda/h3/h3_spectra.cuh"

namespace hippodrome::cuda {
namespace {

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
      .slots = static_cast<const int32_t*>(call.slots.data),
      .tokens = static_cast<int32_t>(call.tokens()),
      .tables = {.spectra = reinterpret_cast<const float4*>(spectra),
                 .twiddles = reinterpret_cast<const float4*>(twiddles),
                 .turns = twiddles + FftTwiddleCount(kPoints)},
  };
  const int blocks = (layer.d_model + Block::kChannels - 1) / Block::kChannels;
  Launch(device, "h3_fft", H3FftKernel<T, kPoints>,
         {.blocks = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(call.sequences())),
          .threads = dim3(Block::kThreads),
          .shared_bytes = Block::kSharedBytes},
         arguments);
}

template <typename T>
void StartShortest(Device& device, const H3SequenceCall& call) {
  WithTransform<kShortestTransform>(
      call.tokens(), [&](auto points) { Start<T, decltype(points)::value>(device, call); });
}

// Of the block of the shortest transform that holds the tokens.
size_t SharedBytes(int64_t tokens) {
  return WithTransform<kShortestTransform>(
      tokens, [](auto points) { return H3FftBlock<decltype(points)::value>::kSharedBytes; });
}

}  // namespace

bool CanTransform(const H3Constants& constants, int64_t start, int64_t tokens,
                  size_t shared_bytes) {
  const H3View& layer = constants.view();
  return layer.head_dim == 1 && layer.taps <= kMostTaps && layer.modes <= kMostModes &&
         start == 0 && tokens <= kLongestBlockTransform && SharedBytes(tokens) <= shared_bytes;
}

void H3Fft(Device& device, const H3SequenceCall& call) {
  assert(CanTransform(call.constants, call.start, call.tokens(), device.shared_bytes()));
  assert(call.qkv.cols == 3 * int64_t{call.constants.view().d_model});
  if (call.constants.activations() == DType::kBF16) {
    StartShortest<BF16>(device, call);
  } else {
    StartShortest<float>(device, call);
  }
}

}  // namespace hippodrome::cuda
