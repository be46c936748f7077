#include "kernels/cpu/conv/long_conv_weights.h"

#include <algorithm>
#include <cassert>
#include <complex>

#include "kernels/cpu/conv/toeplitz.h"
#include "kernels/ssm/long_conv_ssm.h"

namespace hippodrome::cpu {

LongConvKernels::LongConvKernels(const LongConvParameters& parameters, int64_t longest,
                                 const HeadLoop& loop)
    : tiling_{ShapeOf(parameters).channels, ShapeOf(parameters).heads}, longest_(longest) {
  assert(heads() > 0 && channels() % heads() == 0 && longest > 0);
  const std::vector<double> kernels = LongConvKernel(parameters, longest, loop);
  taps_.resize(static_cast<size_t>(heads() * TapsOfHead()));
  for (int64_t h = 0; h < heads(); ++h) {
    const double* kernel = kernels.data() + h * longest;
    float* first = taps_.data() + h * TapsOfHead();
    for (int64_t l = 0; l < longest; ++l) {
      first[longest - 1 - l] = static_cast<float>(kernel[l]);
    }
  }
}

int64_t LongConvKernels::TapsOfHead() const { return longest_ + kZeroTaps; }

const float* LongConvKernels::Taps(int64_t head) const {
  return taps_.data() + head * TapsOfHead() + longest_ - 1;
}

const float* LongConvKernels::Spectra(const FftPlan& plan) const {
  std::vector<float>& spectra = spectra_[plan.length()];
  if (!spectra.empty()) return spectra.data();
  spectra.reserve(static_cast<size_t>(heads() * 2 * plan.length()));
  const int64_t points = std::min(longest_, plan.length());
  std::vector<double> kernel(static_cast<size_t>(points));
  std::vector<std::complex<double>> spectrum(static_cast<size_t>(plan.length()));
  for (int64_t h = 0; h < heads(); ++h) {
    const float* taps = Taps(h);
    for (int64_t l = 0; l < points; ++l) kernel[static_cast<size_t>(l)] = double{taps[-l]};
    plan.Spectrum(kernel.data(), points, spectrum.data());
    for (const std::complex<double>& value : spectrum) {
      spectra.push_back(static_cast<float>(value.real()));
      spectra.push_back(static_cast<float>(value.imag()));
    }
  }
  return spectra.data();
}

const TileKernels& LongConvKernels::Tiles() const {
  if (tiles_ != nullptr) return *tiles_;
  tiles_ = std::make_shared<TileKernels>(tiling_.kernel_tiles(), longest_);
  for (int64_t tile = 0; tile < tiles_->tiles(); ++tile) {
    for (int64_t lane = 0; lane < kTileChannels; ++lane) {
      const int64_t head = tiling_.Head(tile, lane);
      if (head < 0) break;
      const float* taps = Taps(head);
      float* to = tiles_->Taps(tile) + lane;
      for (int64_t l = 0; l < longest_; ++l) to[l * kTileChannels] = taps[-l];
    }
  }
  return *tiles_;
}

int64_t LongConvKernels::bytes() const {
  size_t floats = taps_.size();
  for (const auto& [length, spectra] : spectra_) floats += spectra.size();
  const int64_t tiles = tiles_ == nullptr ? 0 : tiles_->bytes();
  return static_cast<int64_t>(floats * sizeof(float)) + tiles;
}

LongConvKernelGradients::LongConvKernelGradients(const LongConvTiling& tiling, int64_t longest)
    : tiling_(tiling),
      longest_(longest),
      lanes_(static_cast<size_t>(tiling.kernel_tiles() * longest * kTileChannels)) {}

void LongConvKernelGradients::Add(int64_t kernel_tile, std::span<const float> dk) {
  double* sums = lanes_.data() + kernel_tile * longest_ * kTileChannels;
  for (size_t i = 0; i < dk.size(); ++i) sums[i] += double{dk[i]};
}

std::vector<double> LongConvKernelGradients::OfHeads() const {
  std::vector<double> heads(static_cast<size_t>(tiling_.heads * longest_));
  const double* sums = lanes_.data();
  for (int64_t tile = 0; tile < tiling_.kernel_tiles(); ++tile, sums += longest_ * kTileChannels) {
    for (int64_t lane = 0; lane < kTileChannels; ++lane) {
      const int64_t head = tiling_.Head(tile, lane);
      if (head < 0) break;
      double* to = heads.data() + head * longest_;
      for (int64_t l = 0; l < longest_; ++l) to[l] += sums[l * kTileChannels + lane];
    }
  }
  return heads;
}

void LongConvKernelGradients::Zero() { std::fill(lanes_.begin(), lanes_.end(), 0.0); }

}  // namespace hippodrome::cpu
