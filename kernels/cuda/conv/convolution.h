// Convolutions of the columns of matrices over time, and their gradients, in f32: what training
// makes its backwards of H3 and of the long convolution from.
//   kForward:   y_t = sum_l K[l] u_{t-l}
//   kBackward:  the same in reversed time, y_t = sum_l K[l] u_{t+l}
// Short kernels and short sequences are summed directly; longer ones are transformed, as long as a
// block can hold a transform, and beyond that summed directly again, which is slow.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_CONVOLUTION_H_
#define HIPPODROME_KERNELS_CUDA_CONV_CONVOLUTION_H_

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/base/device.h"
#include "kernels/training_backend.h"

namespace hippodrome::cuda {

// What the transforms of one length read, in device memory.
struct ConvolutionTables {
  std::shared_ptr<void> memory;
  int64_t bytes = 0;
};

// The kernels K of `heads` heads in device memory.
class ConvolutionKernels {
 public:
  // kernels: [heads, count].
  ConvolutionKernels(Device& device, std::span<const float> kernels, int64_t heads);

  int64_t heads() const { return heads_; }
  int64_t count() const { return count_; }
  int64_t bytes() const;
  const float* values() const {
    return static_cast<const float*>(values_.get());
  }  // [count, heads]

  // The tables for transforms of `points` points, made at their first use by `make`, and kept.
  template <typename Make>
  const void* Tables(int64_t points, const Make& make) const {
    ConvolutionTables& tables = tables_[points];
    if (tables.memory == nullptr) tables = make();
    return tables.memory.get();
  }

 private:
  int64_t heads_;
  int64_t count_;
  std::shared_ptr<void> values_;
  mutable std::map<int64_t, ConvolutionTables> tables_;
};

// d loss / d K of `heads` heads, summed over calls in device memory.
class KernelGradientSums {
 public:
  KernelGradientSums(Device& device, int64_t heads, int64_t count);

  int64_t heads() const { return heads_; }
  int64_t count() const { return count_; }
  double* values() const { return static_cast<double*>(values_.get()); }  // [count, heads]

  // The sums [heads, count], which become zero. Waits for the device, and throws DeviceError if any
  // of its work failed.
  std::vector<double> Take(Device& device);

 private:
  int64_t heads_;
  int64_t count_;
  std::shared_ptr<void> values_;
};

// Column c of u, y, dy and du belongs to head c / (columns / heads).
struct ConvolutionCall {
  const ConvolutionKernels& kernels;
  Tensor u;  // [B T, columns], kF32 or kBF16
  int64_t sequences = 0;
  Direction direction = Direction::kForward;

  int64_t tokens() const { return u.rows / sequences; }
};

enum class ConvolutionMethod : uint8_t { kFastest, kDirect, kFft };

// Whether a block can hold a transform of this many tokens. shared_bytes: Device::shared_bytes().
bool CanConvolveByFft(int64_t tokens, size_t shared_bytes);

// y: f32 [B T, columns], not u. REQUIRES: CanConvolveByFft() for kFft.
void Convolve(Device& device, const ConvolutionCall& call, const Gradient& y,
              ConvolutionMethod method = ConvolutionMethod::kFastest);

// With dy = d loss / d y:  du_t = sum_l K[l] dy_{t+l};  dK[l] += sum_t dy_t u_{t-l}, in the time of
// the direction.
struct ConvolutionGradients {
  Tensor dy;    // f32 [B T, columns]
  Tensor y;     // f32, which becomes K (*) u; or empty
  Gradient du;  // f32
};
void ConvolveBackward(Device& device, const ConvolutionCall& call,
                      const ConvolutionGradients& gradients, KernelGradientSums& sums,
                      ConvolutionMethod method = ConvolutionMethod::kFastest);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_CONVOLUTION_H_
