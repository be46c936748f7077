#include "kernels/cuda/h3/h3_weights.h"

#include <complex>
#include <span>
#include <vector>

#include "kernels/ssm/h3_ssm.h"

namespace hippodrome::cuda {
namespace {

// Every array starts at a multiple of this, in floats.
constexpr size_t kAlignment = 64;

// Host memory that will be uploaded at once; arrays are named by where they start in it.
class Packing {
 public:
  size_t Begin() {
    floats_.resize((floats_.size() + kAlignment - 1) / kAlignment * kAlignment);
    return floats_.size();
  }
  void Add(double value) { floats_.push_back(static_cast<float>(value)); }
  void Add(std::complex<double> value) {
    Add(value.real());
    Add(value.imag());
  }
  const std::vector<float>& floats() const { return floats_; }

 private:
  std::vector<float> floats_;
};

size_t PackTaps(const H3Parameters& p, Packing& packing) {
  const size_t begin = packing.Begin();
  for (const float tap : H3TapsWithSkips(p)) packing.Add(tap);
  return begin;
}

size_t Pack(std::span<const std::complex<double>> values, Packing& packing) {
  const size_t begin = packing.Begin();
  for (const std::complex<double>& value : values) packing.Add(value);
  return begin;
}

size_t PackSkip(const H3Parameters& p, Packing& packing) {
  const size_t begin = packing.Begin();
  for (const float d : p.d) packing.Add(d);
  return begin;
}

size_t PackKernel(const H3Parameters& p, const H3Modes& modes, Packing& packing) {
  const size_t begin = packing.Begin();
  std::vector<double> kernel(kScanSteps);
  for (int64_t head = 0; head < modes.heads; ++head) {
    HeadKernel(modes, head, kernel);
    kernel[0] += p.d[static_cast<size_t>(head)];
    for (const double value : kernel) packing.Add(value);
  }
  return begin;
}

}  // namespace

H3PrefillWeights::H3PrefillWeights(Device& device, const H3Parameters& p, DType activations)
    : activations_(activations) {
  const H3Modes modes = DiscretizeH3(p);
  Packing packing;
  const size_t fir = PackTaps(p, packing);
  const size_t a = Pack(modes.da, packing);
  const size_t w = Pack(modes.weights, packing);
  const size_t skip = PackSkip(p, packing);
  const size_t kernel = PackKernel(p, modes, packing);

  const size_t bytes = packing.floats().size() * sizeof(float);
  memory_ = AllocateZeroed(device, bytes);
  memory_bytes_ = static_cast<int64_t>(bytes);
  CopyToDevice(device, packing.floats().data(), memory_.get(), bytes);
  const auto* floats = static_cast<const float*>(memory_.get());
  view_ = {.d_model = static_cast<int32_t>(p.d_model),
           .head_dim = static_cast<int32_t>(p.head_dim),
           .heads = static_cast<int32_t>(modes.heads),
           .taps = static_cast<int32_t>(p.d_state),
           .modes = static_cast<int32_t>(modes.modes),
           .head_major = p.output_order == H3OutputOrder::kHeadD2 ? 1 : 0,
           .fir = floats + fir,
           .a = reinterpret_cast<const float2*>(floats + a),
           .w = reinterpret_cast<const float2*>(floats + w),
           .skip = floats + skip,
           .kernel = floats + kernel};
}

int64_t H3PrefillWeights::bytes() const { return memory_bytes_; }

}  // namespace hippodrome::cuda
