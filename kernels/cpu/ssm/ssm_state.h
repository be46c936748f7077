// The states of a decoder's SSM on the CPU.
#ifndef HIPPODROME_KERNELS_CPU_SSM_SSM_STATE_H_
#define HIPPODROME_KERNELS_CPU_SSM_SSM_STATE_H_

#include <vector>

#include "kernels/cpu/base/recurrent_slots.h"
#include "kernels/cpu/ssm/ssm_weights.h"

namespace hippodrome::cpu {

class SsmSlots final : public RecurrentSlots {
 public:
  SsmSlots(const SsmLayout& layout, int64_t slots);

  std::vector<StateArray> arrays() const override;
  int64_t Export(int64_t slot, int64_t position,
                 std::span<const std::span<float>> arrays) const override;
  void Import(int64_t slot, int64_t position,
              std::span<const std::span<const float>> arrays) override;

  // [kept modes]
  LaneComplex* Tile(int64_t slot, int64_t tile) const;
  // The channels of a tile alone.
  void CopyTile(int64_t from, int64_t to, int64_t tile);

 private:
  SsmLayout layout_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_SSM_SSM_STATE_H_
