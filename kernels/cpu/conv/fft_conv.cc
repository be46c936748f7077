#include "kernels/cpu/conv/fft_conv.h"

#include <algorithm>
#include <cassert>
#include <complex>
#include <vector>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {
namespace {

int64_t Tiles(int64_t channels) { return (channels + kTileChannels - 1) / kTileChannels; }

}  // namespace

FftConv::FftConv(std::span<const double> kernels, int64_t channels, int64_t length)
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

int64_t FftConv::bytes() const {
  return Tiles(channels_) * kTileChannels * 2 * plan_.length() *
         static_cast<int64_t>(sizeof(float));
}

void FftConv::Apply(ThreadPool& pool, Tensor x, Tensor y) const {
  assert(x.rows <= length_ && x.cols == channels_ && y.rows == x.rows && y.cols == channels_);
  pool.Run(Tiles(channels_), [&](int64_t tile, int) { ApplyTile(tile, x, y); });
}

void FftConv::ApplyTile(int64_t tile, Tensor x, Tensor y) const {
  const int64_t points = plan_.length();
  const int64_t first = tile * kTileChannels;
  const int64_t width = std::min(kTileChannels, channels_ - first);
  const float* spectrum =
      static_cast<const float*>(spectra_.get()) + tile * points * 2 * kTileChannels;
  float* work =
      ThreadScratch<float>(ScratchUse::kConvolution, plan_.work_floats() + points * kTileChannels);
  if (width == kTileChannels && x.rows == points) {
    const TimeSeries in = {F32Row(x, 0) + first, x.stride, points, width};
    const TimeSeries out = {F32Row(y, 0) + first, y.stride, points, width};
    return ConvolveTile(plan_, spectrum, in, out, nullptr, work);
  }
  // A tile that lacks rows or channels is completed with zeros beside the caller's memory.
  const TimeSeries padded = TileSeries(work + plan_.work_floats(), points);
  const TimeSeries in = {F32Row(x, 0) + first, x.stride, x.rows, width};
  LoadTile(in, 0, points, padded.first);
  ConvolveTile(plan_, spectrum, padded, padded, nullptr, work);
  StoreTile(padded.first, false, {F32Row(y, 0) + first, y.stride, y.rows, width});
}

}  // namespace hippodrome::cpu
