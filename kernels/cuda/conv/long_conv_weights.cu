#include "kernels/cuda/conv/long_conv_weights.h"

#include <cassert>

#include "kernels/ssm/long_conv_ssm.h"

namespace hippodrome::cuda {
namespace {

// The next term of x, which becomes the rest.
uint32_t TakeTerm(double& x) {
  const BF16 term = ToBF16(static_cast<float>(x));
  x -= double{ToFloat(term)};
  return term.bits;
}

// Appends the pairs of one head.
void AppendPairs(std::span<const double> kernel, int terms, std::vector<uint32_t>& pairs) {
  std::vector<double> rest(kernel.begin(), kernel.end());
  rest.push_back(0);
  for (int term = 0; term < terms; ++term) {
    uint32_t previous = 0;
    for (double& x : rest) {
      const uint32_t bits = TakeTerm(x);
      pairs.push_back(bits | previous << 16);
      previous = bits;
    }
  }
}

}  // namespace

LongConvKernels::LongConvKernels(Device& device, const LongConvParameters& parameters,
                                 int64_t longest, DType activations, const HeadLoop& loop)
    : channels_(ShapeOf(parameters).channels),
      heads_(ShapeOf(parameters).heads),
      longest_(longest),
      activations_(activations),
      kernels_(LongConvKernel(parameters, longest, loop)) {
  assert(longest >= 1 && channels_ % heads_ == 0);
  std::vector<uint32_t> pairs;
  for (int64_t head = 0; head < heads_; ++head) {
    AppendPairs(Kernel(head), KernelTerms(activations), pairs);
  }
  pairs_ = Upload(device, std::as_bytes(std::span(pairs)));
}

const ConvolutionKernels& LongConvKernels::BackwardKernels(Device& device) const {
  if (backward_kernels_ == nullptr) {
    const std::vector<float> kernels(kernels_.begin(), kernels_.end());
    backward_kernels_ = std::make_unique<ConvolutionKernels>(device, kernels, heads_);
  }
  return *backward_kernels_;
}

std::shared_ptr<void> LongConvKernels::Upload(Device& device,
                                              std::span<const std::byte> bytes) const {
  std::shared_ptr<void> memory = AllocateZeroed(device, bytes.size());
  CopyToDevice(device, bytes.data(), memory.get(), bytes.size());
  bytes_ += static_cast<int64_t>(bytes.size());
  return memory;
}

}  // namespace hippodrome::cuda
