// In place of fftw_convolution.cc where FFTW is missing.
#include "tools/bench/fftw_convolution.h"

namespace hippodrome {

std::unique_ptr<PeerConvolution> MakeFftwConvolution(std::span<const double>, int64_t, int64_t) {
  return nullptr;
}

}  // namespace hippodrome
