// Causal convolutions by FFTW, for comparison.
#ifndef HIPPODROME_TOOLS_BENCH_FFTW_CONVOLUTION_H_
#define HIPPODROME_TOOLS_BENCH_FFTW_CONVOLUTION_H_

#include <cstdint>
#include <memory>
#include <span>

namespace hippodrome {

class PeerConvolution {
 public:
  virtual ~PeerConvolution() = default;
  // y[c, t] = sum_{s <= t} k_c[s] x[c, t - s].  x, y: [channels, length].
  virtual void Apply(const float* x, float* y) = 0;
};

// kernels: [channels, length]. Real transforms of 2 length points, planned by measuring, on one
// thread. Null when FFTW was not there at build time.
std::unique_ptr<PeerConvolution> MakeFftwConvolution(std::span<const double> kernels,
                                                     int64_t channels, int64_t length);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_FFTW_CONVOLUTION_H_
