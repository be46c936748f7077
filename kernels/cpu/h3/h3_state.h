// The recurrent states of one H3 layer on the CPU.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/base/recurrent_slots.h"
#include "kernels/cpu/h3/h3_weights.h"
#include "kernels/dtype.h"

namespace hippodrome::cpu {

// The tokens of a slot that are pending in a group, which h3_block.h takes into its rings and modes
// a block at a time.
// Between operations all groups of a slot are at the same place.
struct GroupBlock {
  struct Place {
    int32_t base = 0;       // position of the first one
    int32_t has_ahead = 0;  // whether key_sums and sums of `pending` are of this base
  };

  Place* place;
  PendingRows pending;
};

// What a slot keeps of a group, with the rings and modes of the tokens before the block's base.
// Stored: float or BF16.
template <typename Stored>
struct GroupState : GroupBlock {
  Stored* rings;  // [channel blocks, taps, lanes]: k of the token at p is in row p mod N
  Stored* modes;  // [row blocks, modes, re | im, lanes]: x / dB
};

// Values of rings and modes from and to f32. To bf16 they are rounded to nearest even, which
// changes none that had been there.
inline void CopyValues(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}
inline void CopyValues(const float* from, int64_t count, BF16* to) {
  std::transform(from, from + count, to, ToBF16);
}
inline void CopyValues(const BF16* from, int64_t count, float* to) {
  std::transform(from, from + count, to, [](BF16 x) { return ToFloat(x); });
}

// A slot has the places of all groups, then their pending rows side by side, for every step reads
// these; then for each group its rings and modes.
class H3Slots final : public RecurrentSlots {
 public:
  // `type`: of rings and modes, kF32 or kBF16. `constants` must outlive it.
  H3Slots(const H3PrefillWeights& constants, int64_t slots, DType type = DType::kF32);

  DType type() const { return type_; }

  int64_t bytes_per_step() const override;
  int64_t rewind_block() const override { return kScanSteps; }
  std::vector<StateArray> arrays() const override;
  int64_t Export(int64_t slot, int64_t position,
                 std::span<const std::span<float>> arrays) const override;
  void Import(int64_t slot, int64_t position,
              std::span<const std::span<const float>> arrays) override;

  // REQUIRES: Stored is that of type().
  template <typename Stored>
  GroupState<Stored> Group(int64_t slot, int64_t group) const;

 private:
  template <typename Stored>
  int64_t ExportGroup(int64_t slot, int64_t group, int64_t position,
                      std::span<const std::span<float>> arrays) const;
  template <typename Stored>
  void ImportGroup(int64_t slot, int64_t group, int64_t position,
                   std::span<const std::span<const float>> arrays);

  const H3PrefillWeights& constants_;
  const H3Layout& layout_;
  const DType type_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_
