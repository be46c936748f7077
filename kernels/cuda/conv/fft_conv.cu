#include "kernels/cuda/conv/fft_conv.h"

#include <cassert>
#include <complex>
#include <numbers>
#include <vector>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/fft_conv.cuh"

namespace hippodrome::cuda {
namespace {

using Complex = std::complex<double>;

// The spectrum of every `step`-th value of `kernel` from the first on.
std::vector<Complex> Spectrum(std::span<const double> kernel, size_t first, size_t step) {
  std::vector<Complex> values;
  for (size_t t = first; t < kernel.size(); t += step) values.emplace_back(kernel[t]);
  return DoubleTransform(values);
}

// Appends `spectrum` / its size in the order in which blocks read it.
void Append(const std::vector<Complex>& spectrum, std::vector<std::complex<float>>& spectra) {
  const int points = static_cast<int>(spectrum.size());
  const size_t begin = spectra.size();
  spectra.resize(begin + spectrum.size());
  for (int i = 0; i < points; ++i) {
    const Complex value = spectrum[static_cast<size_t>(FftFrequency(points, i))];
    spectra[begin + static_cast<size_t>(FftSpectrumOffset(points, i))] =
        std::complex<float>(value / double{static_cast<double>(points)});
  }
}

// The factors A | B of HalvedSequence for a kernel of 2 N points. With Z = X_e + i X_o made of the
// even and odd inputs, X_e = (Z + Z') / 2 and X_o = (Z - Z') / 2i, where Z'_f = conj(Z_-f); and
// Y_e = K_e X_e + w K_o X_o, Y_o = K_o X_e + K_e X_o with a delay of one, w = exp(-2 pi i f / N).
// So Y_e + i Y_o = (K_e + i K_o (1 - w) / 2) Z + (i K_o (1 + w) / 2) Z'.
void AppendHalved(std::span<const double> kernel, std::vector<std::complex<float>>& spectra) {
  std::vector<Complex> a = Spectrum(kernel, 0, 2);
  std::vector<Complex> b = Spectrum(kernel, 1, 2);
  for (size_t f = 0; f < a.size(); ++f) {
    const double turn = static_cast<double>(f) / static_cast<double>(a.size());
    const Complex delay = std::polar(1.0, -2 * std::numbers::pi * turn);
    const Complex odd = Complex(0, 0.5) * b[f];
    a[f] += odd * (1.0 - delay);
    b[f] = odd * (1.0 + delay);
  }
  Append(a, spectra);
  Append(b, spectra);
}

std::shared_ptr<void> Upload(Device& device, const std::vector<std::complex<float>>& values) {
  const size_t bytes = values.size() * sizeof(values[0]);
  std::shared_ptr<void> memory = AllocateZeroed(device, bytes);
  CopyToDevice(device, values.data(), memory.get(), bytes);
  return memory;
}

class FusedGatedConv final : public GatedConv {
 public:
  FusedGatedConv(Device& device, std::span<const double> kernels, int64_t channels, int64_t points)
      : device_(device), channels_(channels), points_(points) {
    std::vector<std::complex<float>> spectra;
    for (int64_t c = 0; c < channels; ++c) {
      const auto kernel =
          kernels.subspan(static_cast<size_t>(c * points), static_cast<size_t>(points));
      if (halved()) {
        AppendHalved(kernel, spectra);
      } else {
        Append(Spectrum(kernel, 0, 1), spectra);
      }
    }
    spectra_ = Upload(device, spectra);
    twiddles_ = Upload(device, FftTwiddles(transform()));
  }

  void Apply(const GatedConvCall& call) override {
    assert(call.k.rows == call.sequences * channels_ && call.k.cols == points_);
    if (call.k.dtype == DType::kBF16) {
      Start<BF16>(call);
    } else {
      Start<float>(call);
    }
  }

 private:
  bool halved() const { return points_ > kLongestBlockTransform; }
  int transform() const { return static_cast<int>(halved() ? points_ / 2 : points_); }

  template <typename T>
  void Start(const GatedConvCall& call) {
    const GatedConvRows<T> rows = {
        .k = static_cast<const T*>(call.k.data),
        .v = static_cast<const T*>(call.v.data),
        .q = static_cast<const T*>(call.q.data),
        .y = static_cast<T*>(call.y.data),
        .spectra = static_cast<const float4*>(spectra_.get()),
        .twiddles = static_cast<const float4*>(twiddles_.get()),
        .sequences = static_cast<int32_t>(call.sequences),
        .channels = static_cast<int32_t>(channels_),
    };
    if (halved()) {
      Start<HalvedSequence, T, kLongestBlockTransform>(rows, call.sequences);
    } else {
      StartPairs<T, kFftValues>(rows, (call.sequences + 1) / 2);
    }
  }

  template <typename T, int kPoints>
  void StartPairs(const GatedConvRows<T>& rows, int64_t pairs) {
    if (points_ == kPoints) {
      Start<SequencePair, T, kPoints>(rows, pairs);
    } else if constexpr (kPoints < kLongestBlockTransform) {
      StartPairs<T, 2 * kPoints>(rows, pairs);
    }
  }

  template <template <typename, int> typename Sequences, typename T, int kPoints>
  void Start(const GatedConvRows<T>& rows, int64_t transforms) {
    constexpr int groups = kConvGroups<kPoints>;
    const Grid grid = {
        .blocks = dim3(static_cast<unsigned>((transforms + groups - 1) / groups),
                       static_cast<unsigned>(channels_)),
        .threads = dim3(kConvThreads<kPoints>),
        .shared_bytes = groups * kFftShared<kPoints> * sizeof(float2),
    };
    Launch(device_, "fft_conv", GatedConvKernel<Sequences, T, kPoints>, grid, rows);
  }

  Device& device_;
  int64_t channels_;
  int64_t points_;
  std::shared_ptr<void> spectra_;
  std::shared_ptr<void> twiddles_;
};

}  // namespace

std::unique_ptr<GatedConv> MakeFusedGatedConv(Device& device, std::span<const double> kernels,
                                              int64_t channels, int64_t points) {
  assert(points >= kFftValues && points <= kLongestFusedTransform);
  assert(channels <= 65535);  // the second dimension of a grid
  return std::make_unique<FusedGatedConv>(device, kernels, channels, points);
}

}  // namespace hippodrome::cuda
