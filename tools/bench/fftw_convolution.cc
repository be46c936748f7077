#include "tools/bench/fftw_convolution.h"

#include <fftw3.h>

#include <algorithm>
#include <complex>
#include <vector>

namespace hippodrome {
namespace {

struct FftwFree {
  void operator()(void* memory) const { fftwf_free(memory); }
};

template <typename T>
using FftwArray = std::unique_ptr<T[], FftwFree>;

class FftwConvolution final : public PeerConvolution {
 public:
  FftwConvolution(std::span<const double> kernels, int64_t channels, int64_t length)
      : channels_(channels),
        length_(length),
        signal_(fftwf_alloc_real(static_cast<size_t>(2 * length))),
        spectrum_(fftwf_alloc_complex(static_cast<size_t>(length + 1))),
        forward_(fftwf_plan_dft_r2c_1d(static_cast<int>(2 * length), signal_.get(), spectrum_.get(),
                                       FFTW_MEASURE)),
        backward_(fftwf_plan_dft_c2r_1d(static_cast<int>(2 * length), spectrum_.get(),
                                        signal_.get(), FFTW_MEASURE)) {
    for (int64_t c = 0; c < channels; ++c) {
      std::copy_n(kernels.begin() + c * length, length, signal_.get());
      std::fill_n(signal_.get() + length, length, 0.0f);
      fftwf_execute(forward_);
      for (int64_t i = 0; i <= length; ++i) {
        kernels_.push_back(Spectrum()[i] / static_cast<float>(2 * length));
      }
    }
  }

  ~FftwConvolution() override {
    fftwf_destroy_plan(forward_);
    fftwf_destroy_plan(backward_);
  }

  void Apply(const float* x, float* y) override {
    for (int64_t c = 0; c < channels_; ++c) {
      std::copy_n(x + c * length_, length_, signal_.get());
      std::fill_n(signal_.get() + length_, length_, 0.0f);
      fftwf_execute(forward_);
      Multiply(kernels_.data() + c * (length_ + 1));
      fftwf_execute(backward_);
      std::copy_n(signal_.get(), length_, y + c * length_);
    }
  }

 private:
  std::complex<float>* Spectrum() const {
    return reinterpret_cast<std::complex<float>*>(spectrum_.get());
  }

  // In parts: the operator of std::complex checks for NaN.
  void Multiply(const std::complex<float>* kernel) {
    std::complex<float>* z = Spectrum();
    for (int64_t i = 0; i <= length_; ++i) {
      const float re = z[i].real() * kernel[i].real() - z[i].imag() * kernel[i].imag();
      const float im = z[i].real() * kernel[i].imag() + z[i].imag() * kernel[i].real();
      z[i] = {re, im};
    }
  }

  int64_t channels_;
  int64_t length_;
  FftwArray<float> signal_;            // [2 length]
  FftwArray<fftwf_complex> spectrum_;  // [length + 1]
  fftwf_plan forward_;
  fftwf_plan backward_;
  std::vector<std::complex<float>> kernels_;  // [channels, length + 1]
};

}  // namespace

std::unique_ptr<PeerConvolution> MakeFftwConvolution(std::span<const double> kernels,
                                                     int64_t channels, int64_t length) {
  return std::make_unique<FftwConvolution>(kernels, channels, length);
}

}  // namespace hippodrome
