#include "kernels/cuda/conv/long_conv_fft.cuh"

#include <algorithm>
#include <cassert>
#include <complex>
#include <numbers>
#include <vector>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/long_conv.h"
#include "kernels/cuda/conv/with_transform.h"

namespace hippodrome::cuda {
namespace {

constexpr int kShortestTransform = 512;

// Appends the spectrum of exp(i pi l / 2L) K[l] / L, L = points, in the order in which blocks read
// it.
void AppendSpectrum(std::span<const double> kernel, int points,
                    std::vector<std::complex<float>>& tables) {
  std::vector<std::complex<double>> weighted(static_cast<size_t>(points));
  for (size_t l = 0; l < std::min(kernel.size(), weighted.size()); ++l) {
    const double angle = std::numbers::pi * static_cast<double>(l) / (2.0 * points);
    weighted[l] = std::polar(kernel[l] / points, angle);
  }
  const std::vector<std::complex<double>> spectrum = DoubleTransform(weighted);
  const size_t begin = tables.size();
  tables.resize(begin + spectrum.size());
  for (int i = 0; i < points; ++i) {
    tables[begin + static_cast<size_t>(FftSpectrumOffset(points, i))] =
        std::complex<float>(spectrum[static_cast<size_t>(FftFrequency(points, i))]);
  }
}

// What the kernel reads beside u: the spectra of the heads, then twiddles, then turns.
std::vector<std::complex<float>> MakeTables(const LongConvConstants& constants, int points) {
  std::vector<std::complex<float>> tables;
  for (int64_t head = 0; head < constants.heads(); ++head) {
    AppendSpectrum(constants.Kernel(head), points, tables);
  }
  const std::vector<std::complex<float>> twiddles = FftTwiddles(points);
  const std::vector<std::complex<float>> turns = RightAngleTurns(points);
  tables.insert(tables.end(), twiddles.begin(), twiddles.end());
  tables.insert(tables.end(), turns.begin(), turns.end());
  return tables;
}

template <typename T, int kPoints>
void Start(Device& device, const LongConvCall& call) {
  using Block = LongConvFftBlock<kPoints>;
  const LongConvConstants& constants = call.constants;
  const float2* spectra =
      constants.Tables(device, kPoints, [&] { return MakeTables(constants, kPoints); });
  const float2* twiddles = spectra + constants.heads() * kPoints;
  const int64_t blocks = (constants.channels() + Block::kChannels - 1) / Block::kChannels;
  Launch(device, "long_conv_fft", LongConvFftKernel<T, kPoints>,
         {.blocks = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(call.sequences)),
          .threads = dim3(Block::kThreads),
          .shared_bytes = Block::kSharedBytes},
         MakeView<T>(call),
         RightAngleTables{.spectra = reinterpret_cast<const float4*>(spectra),
                          .twiddles = reinterpret_cast<const float4*>(twiddles),
                          .turns = twiddles + FftTwiddleCount(kPoints)});
}

template <typename T>
void StartShortest(Device& device, const LongConvCall& call) {
  WithTransform<kShortestTransform>(
      call.tokens(), [&](auto points) { Start<T, decltype(points)::value>(device, call); });
}

// Of the block of the shortest transform that holds the tokens.
size_t SharedBytes(int64_t tokens) {
  return WithTransform<kShortestTransform>(
      tokens, [](auto points) { return LongConvFftBlock<decltype(points)::value>::kSharedBytes; });
}

}  // namespace

bool CanTransformLongConv(int64_t tokens, size_t shared_bytes) {
  return tokens <= kLongestBlockTransform && SharedBytes(tokens) <= shared_bytes;
}

void LongConvFft(Device& device, const LongConvCall& call) {
  assert(CanTransformLongConv(call.tokens(), device.shared_bytes()));
  if (call.u.dtype == DType::kBF16) {
    StartShortest<BF16>(device, call);
  } else {
    StartShortest<float>(device, call);
  }
}

}  // namespace hippodrome::cuda
