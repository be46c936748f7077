// The constants of one H3 layer on the CPU.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_WEIGHTS_H_

#include <memory>

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/conv/fft.h"
#include "kernels/cpu/h3/h3_layout.h"
#include "kernels/cpu/h3/h3_scan.h"

namespace hippodrome {
struct H3Modes;
}

namespace hippodrome::cpu {

// Points of the kernel that are kept, and of the transform that convolves with it. The spectrum is
// twice as large and is made again for every sequence: that costs a sixth of the work and keeps the
// constants of a layer small beside its matrices.
inline constexpr int64_t kKernelPoints = 256;

class H3PrefillWeights final : public H3Weights {
 public:
  H3PrefillWeights(ThreadPool& pool, const H3Parameters& parameters);

  int64_t bytes() const override;

  const H3Layout& layout() const { return layout_; }
  const FftPlan& plan() const { return plan_; }

  // Taps of a channel block, [padded taps, lanes], the skip added to the first.
  const float* Taps(int64_t group, int64_t channel_block) const;
  RowConstants Rows(int64_t group, int64_t row_block) const;
  // (K + D at 0) / kKernelPoints of a row block, [kKernelPoints, lanes].
  const float* Kernel(int64_t group, int64_t row_block) const;
  // From the constants of a row block to those of the next.
  int64_t RowBlockFloats() const;

 private:
  void PackTaps(const H3Parameters& parameters);
  void PackRows(const H3Parameters& parameters, const H3Modes& modes, int64_t group);
  float* RowBlock(int64_t group, int64_t row_block) const;

  H3Layout layout_;
  FftPlan plan_;
  std::shared_ptr<void> taps_;
  std::shared_ptr<void> rows_;  // by row block: as RowConstants, then K / kKernelPoints
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_WEIGHTS_H_
