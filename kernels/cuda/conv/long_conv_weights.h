// The kernels of one encoder SSM on a device.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_WEIGHTS_H_
#define HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_WEIGHTS_H_

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/base/device.h"
#include "kernels/cuda/conv/convolution.h"
#include "kernels/ssm/head_loop.h"

namespace hippodrome::cuda {

// Terms of bf16 that a kernel value is split into, so that products are precise enough for the
// activations.
constexpr int KernelTerms(DType activations) { return activations == DType::kBF16 ? 2 : 3; }

class LongConvKernels final : public LongConvWeights {
 public:
  // `activations`: kBF16 or kF32, the dtype of u and y; `loop`: over heads, on the host.
  LongConvKernels(Device& device, const LongConvParameters& parameters, int64_t longest,
                  DType activations, const HeadLoop& loop = OneAfterAnother);

  int64_t longest() const override { return longest_; }
  int64_t bytes() const override {
    return bytes_ + (backward_kernels_ ? backward_kernels_->bytes() : 0);
  }

  int64_t channels() const { return channels_; }
  int64_t heads() const { return heads_; }
  DType activations() const { return activations_; }

  // K[0 .. longest) of a head, D added to the first.
  std::span<const double> Kernel(int64_t head) const {
    return std::span(kernels_).subspan(static_cast<size_t>(head * longest_),
                                       static_cast<size_t>(longest_));
  }
  // [heads, terms, longest + 1], device memory: element l of a term has those of K[l] in its lower
  // half and of K[l - 1] in its upper one, zero where there is none.
  const uint32_t* pairs() const { return static_cast<const uint32_t*>(pairs_.get()); }
  // The kernels as gradients need them, made at first use.
  const ConvolutionKernels& BackwardKernels(Device& device) const;

  // Tables for transforms of `points` points, device memory, made on first use by `make`, a
  // function that returns host memory, and kept.
  template <typename Make>
  const float2* Tables(Device& device, int64_t points, const Make& make) const {
    std::shared_ptr<void>& tables = tables_[points];
    if (tables == nullptr) {
      const auto host = make();
      tables = Upload(device, std::as_bytes(std::span(host)));
    }
    return static_cast<const float2*>(tables.get());
  }

 private:
  std::shared_ptr<void> Upload(Device& device, std::span<const std::byte> bytes) const;

  int64_t channels_;
  int64_t heads_;
  int64_t longest_;
  DType activations_;
  std::vector<double> kernels_;
  mutable int64_t bytes_ = 0;
  std::shared_ptr<void> pairs_;
  mutable std::map<int64_t, std::shared_ptr<void>> tables_;
  mutable std::unique_ptr<ConvolutionKernels> backward_kernels_;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_WEIGHTS_H_
