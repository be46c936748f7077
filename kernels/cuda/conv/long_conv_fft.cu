// The long convolution by transforms. A block has all tokens of a few neighbouring channels of one
// sequence in shared memory, so that what it reads of a token is long. Backward is forward in
// reversed time: tokens are loaded and stored from the last to the first.
#include <algorithm>
#include <cassert>
#include <complex>
#include <numbers>
#include <vector>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/fft_tables.h"
#include "kernels/cuda/conv/long_conv.h"
#include "kernels/cuda/conv/long_conv_view.cuh"
#include "kernels/cuda/conv/right_angle.cuh"

namespace hippodrome::cuda {
namespace {

template <int kPoints>
struct LongConvFftBlock {
  static constexpr int kChannels = kPoints <= 1024 ? 16 : 16384 / kPoints;
  static constexpr int kGroup = kPoints / kFftValues;  // threads of a channel
  static constexpr int kThreads = kChannels * kGroup;
  // Blocks on a multiprocessor: 1024 threads with 64 registers each.
  static constexpr int kBlocks = 1024 / kThreads;

  // Where a row keeps time t, and how far time t + j kGroup is from it.
  static constexpr int Address(int t) { return t; }
  static constexpr int Distance(int j) { return j * kGroup; }
  // Floats of a row. The lanes of a warp have kChannels rows and adjacent times of each: this
  // brings them to different banks.
  static constexpr int kRow = kPoints + kWarp / kChannels;

  // The transforms, in whose memory the rows are before and after.
  static constexpr int kSharedBytes = kChannels * kFftShared<kPoints> * 8;
  static_assert(kChannels * kRow * 4 <= kSharedBytes);
};

// body(x, exists, element) for the times of the channel that this thread has when neighbouring
// threads have neighbouring channels: x in shared memory, whether it has a token and a channel, and
// its place in the matrix. matrix: u or y, rows of `stride`.
template <int kPoints, typename View, typename Element, typename Body>
__device__ inline void ForEachToken(const View& view, Element* matrix, int64_t stride, float* rows,
                                    const Body& body) {
  using Block = LongConvFftBlock<kPoints>;
  const int thread = Forget(static_cast<int>(threadIdx.x));
  const int row = thread % Block::kChannels;
  const int first = thread / Block::kChannels;
  const int channel = static_cast<int>(blockIdx.x) * Block::kChannels + row;
  const int tokens = channel < view.channels ? view.tokens : 0;
  const int token = view.backward ? view.tokens - 1 - first : first;
  const int64_t step = view.backward ? -stride : stride;
  matrix += (int64_t{blockIdx.y} * view.tokens + token) * stride + channel;
  float* x = rows + row * Block::kRow + first;
#pragma unroll 4
  for (int i = 0; i < kFftValues; ++i) {
    const bool exists = first + i * Block::kGroup < tokens;
    body(x[Block::Distance(i)], exists, matrix + i * Block::kGroup * step);
  }
}

// kChannels channels of sequence blockIdx.y, from kChannels * blockIdx.x on.
template <typename T, int kPoints>
__global__ void __launch_bounds__(LongConvFftBlock<kPoints>::kThreads,
                                  LongConvFftBlock<kPoints>::kBlocks)
    LongConvFftKernel(LongConvView<T> view, RightAngleTables tables) {
  using Block = LongConvFftBlock<kPoints>;
  auto* rows = reinterpret_cast<float*>(SharedMemory());
  ForEachToken<kPoints>(view, view.u, view.u_stride, rows,
                        [](float& x, bool exists, const T* u) { x = exists ? Widen(*u) : 0.0f; });
  __syncthreads();
  const int own = static_cast<int>(threadIdx.x) / Block::kGroup;
  const auto head = [&]() -> int64_t {
    const int channel = static_cast<int>(blockIdx.x) * Block::kChannels + own;
    return min(channel, view.channels - 1) / view.head_channels;
  };
  ConvolveRow<Block, kPoints>(tables, head, static_cast<int>(threadIdx.x) % Block::kGroup,
                              rows + own * Block::kRow,
                              reinterpret_cast<float2*>(rows) + own * kFftShared<kPoints>);
  __syncthreads();
  ForEachToken<kPoints>(view, view.y, view.y_stride, rows, [](float y, bool exists, T* to) {
    if (exists) *to = FromFloat<T>(y);
  });
}

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
std::vector<std::complex<float>> MakeTables(const LongConvKernels& constants, int points) {
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
  const LongConvKernels& constants = call.constants;
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
