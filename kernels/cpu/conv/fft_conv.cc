#include "kernels/cpu/conv/fft_conv.h"

#include <algorithm>
#include <cassert>
#include <complex>
#include <vector>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/scratch.h"
#include "kernels/cpu/base/tensor_memory.h"

namespace hippodrome::cpu {
namespace {

int64_t Tiles(int64_t channels) { return (channels + kTileChannels - 1) / kTileChannels; }

}  // namespace

LongConv::LongConv(std::span<const double> kernels, int64_t channels, int64_t length)
    : channels_(channels),
      length_(length),
      plan_(FftPlan::LengthFor(length)),
      spectra_(AllocateZeroed(static_cast<size_t>(bytes()))) {
  const int64_t points = plan_.length();
  std::vector<std::complex<double>> spectrum(static_cast<size_t>(points));
  for (int64_t c = 0; c < channels; ++c) {
    plan_.Spectrum(kernels.data() + c * length, length, spectrum.data());
    StoreSpectrum(
        spectrum, c % kTileChannels,
        static_cast<float*>(spectra_.get()) + c / kTileChannels * points * 2 * kTileChannels);
  }
}

int64_t LongConv::bytes() const {
  return Tiles(channels_) * kTileChannels * 2 * plan_.length() *
         static_cast<int64_t>(sizeof(float));
}

void LongConv::Apply(ThreadPool& pool, Tensor x, Tensor y) const {
  assert(x.rows <= length_ && x.cols == channels_ && y.rows == x.rows && y.cols == channels_);
  pool.Run(Tiles(channels_), [&](int64_t tile, int) { ApplyTile(tile, x, y); });
}

void LongConv::ApplyTile(int64_t tile, Tensor x, Tensor y) const {
  const int64_t points = plan_.length();
  const int64_t first = tile * kTileChannels;
  const int64_t width = std::min(kTileChannels, channels_ - first);
  const float* spectrum =
      static_cast<const float*>(spectra_.get()) + tile * points * 2 * kTileChannels;
  float* work =
      ThreadScratch<float>(ScratchUse::kConvolution, plan_.work_floats() + points * kTileChannels);
  if (width == kTileChannels && x.rows == points) {
    ConvolveTile(plan_, spectrum, F32Row(x, 0) + first, x.stride, F32Row(y, 0) + first, y.stride,
                 work);
    return;
  }
  // A tile that lacks rows or channels is completed with zeros beside the caller's memory.
  float* padded = work + plan_.work_floats();
  std::fill_n(padded, points * kTileChannels, 0.0f);
  for (int64_t t = 0; t < x.rows; ++t) {
    std::copy_n(F32Row(x, t) + first, width, padded + t * kTileChannels);
  }
  ConvolveTile(plan_, spectrum, padded, kTileChannels, padded, kTileChannels, work);
  for (int64_t t = 0; t < y.rows; ++t) {
    std::copy_n(padded + t * kTileChannels, width, F32Row(y, t) + first);
  }
}

}  // namespace hippodrome::cpu
