// Weight matrices in panels: one layout for prefill, steps and embedding rows.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_PACKED_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_GEMM_PACKED_WEIGHTS_H_

#include <memory>
#include <span>

#include "kernels/backend.h"
#include "kernels/cpu/base/thread_pool.h"
#include "kernels/quantized_group.h"

namespace hippodrome::cpu {

// Output columns of a panel: four vectors of 16 floats, so that a tile of six rows fills 24 of the
// 32 AVX-512 registers.
inline constexpr int64_t kPanelColumns = 64;

// Rows of pairs that a matrix tile takes; panels of pairs are filled up to a multiple of it.
inline constexpr int64_t kPairBlock = 16;

// One group of inputs of a panel of quantised weights. The integers are stored kOffset higher,
// without signs: a dot product of bytes takes one factor so. Of kI4 weights a byte has two: of
// input 8 i + j in the lower half and of 8 i + 4 + j in the upper, j < 4.
template <DType kWeights>
struct QuantizedPanel {
  static constexpr DType kType = kWeights;
  static constexpr int64_t kGroup = QuantizedGroup(kWeights);
  static constexpr int kParts = kWeights == DType::kI8 ? 1 : 2;  // integers in a byte
  static constexpr int kOffset = kWeights == DType::kI8 ? 128 : 8;

  static constexpr int64_t kSteps = kGroup / 4 / kParts;  // rows of bytes

  // Where the integer of an input is stored.
  static constexpr int64_t Step(int64_t input) { return input / (4 * kParts); }
  static constexpr int Shift(int64_t input) { return static_cast<int>(input / 4 % kParts) * 4; }

  int Get(int64_t input, int64_t column) const {
    const int byte = values[Step(input)][column][input % 4];
    return (byte >> Shift(input) & (2 * kOffset - 1)) - kOffset;
  }
  // REQUIRES: zeros before.
  void Set(int64_t input, int64_t column, int value) {
    values[Step(input)][column][input % 4] |=
        static_cast<uint8_t>((value + kOffset) << Shift(input));
  }

  uint8_t values[kSteps][kPanelColumns][4];
  BF16 scales[kPanelColumns];
};
using Int8Panel = QuantizedPanel<DType::kI8>;
using Int4Panel = QuantizedPanel<DType::kI4>;
static_assert(sizeof(Int8Panel) % 64 == 0 && sizeof(Int4Panel) % 64 == 0);

// W [out, in] as ceil(out / 64) panels, zero beyond `out` and `in`:
//   kF32:  [panel][in][64]
//   kBF16: [panel][ceil(in / 2), up to a multiple of 16][64][2], the pairs that a bf16 dot product
//          takes
//   kI8, kI4: [panel][QuantizedGroups(in)] QuantizedPanel
class PackedWeights : public LinearWeights {
 public:
  // Zeroed panels. REQUIRES: out > 0, in > 0, dtype of kWeightTypes.
  PackedWeights(int64_t out, int64_t in, DType dtype);
  // Panels in memory that the caller keeps, PanelBytes() for each 64 outputs, contents unspecified.
  PackedWeights(int64_t out, int64_t in, DType dtype, void* memory);

  int64_t out() const override { return out_; }
  int64_t in() const override { return in_; }
  int64_t bytes() const override { return panels() * PanelBytes(in_, dtype_); }

  static int64_t PanelBytes(int64_t in, DType dtype);

  DType dtype() const { return dtype_; }
  int64_t panels() const { return (out_ + kPanelColumns - 1) / kPanelColumns; }
  // `in` in units of a panel: elements of kF32, pairs of kBF16, groups of others.
  int64_t depth() const;
  // `depth` of kF32 or kBF16 with what fills a panel up.
  int64_t filled_depth() const { return PanelBytes(in_, dtype_) / (kPanelColumns * 4); }
  char* panel(int64_t index) const {
    return static_cast<char*>(memory_.get()) + index * PanelBytes(in_, dtype_);
  }

 private:
  int64_t out_;
  int64_t in_;
  DType dtype_;
  std::shared_ptr<void> memory_;
};

// The contract of Backend::PackLinear.
std::unique_ptr<PackedWeights> PackLinear(ThreadPool& pool, std::span<const HostMatrix> parts,
                                          DType dtype);

// Copies row `row` of W (in() floats) to `values`.
void UnpackRow(const PackedWeights& weights, int64_t row, float* values);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_PACKED_WEIGHTS_H_
