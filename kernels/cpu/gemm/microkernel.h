// The microkernels: a few rows of activations by one panel of weights.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_MICROKERNEL_H_
#define HIPPODROME_KERNELS_CPU_GEMM_MICROKERNEL_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/base/later_reads.h"
#include "kernels/cpu/gemm/packed_weights.h"
#include "kernels/dtype.h"
#include "kernels/quantized_group.h"

namespace hippodrome::cpu {

// Rows of a tile: 6 x 64 sums fill 24 vector registers and leave room for the operands.
inline constexpr int kMicrokernelRows = 6;

// Cache lines that a tile asks for while it multiplies: from `next` on so many with each k, but
// none with every `pause`-th one, where `pause` is not 0; and those of `later`, if it is not null.
struct LinesAhead {
  const void* next = nullptr;
  int lines = 0;
  int pause = 0;
  LaterLines* later = nullptr;
};

// Asks for them, those of `next` into the first-level cache: among noisy neighbours products of 32
// rows with weights from memory take up to 8 % less time so on two cores of a Zen 5 than into the
// second, in a quiet minute as long.
class FetchAhead {
 public:
  explicit FetchAhead(const LinesAhead& ahead)
      : next_(static_cast<const char*>(ahead.next)),
        lines_(ahead.lines),
        pause_(ahead.pause),
        until_pause_(ahead.pause),
        later_(ahead.later) {}

  // Those of one k.
  void Step() {
    if (later_ != nullptr) later_->Step();
    if (--until_pause_ == 0) {
      until_pause_ = pause_;
    } else {
      Fetch(lines_);
    }
  }
  // Those of the scales behind the integers of a group: half a step.
  void Scales() { Fetch((lines_ + 1) / 2); }

 private:
  void Fetch(int lines) {
    for (int i = 0; i < lines; ++i, next_ += 64) __builtin_prefetch(next_, 0, 3);
  }

  const char* next_;
  int lines_;
  int pause_;
  int64_t until_pause_;
  LaterLines* later_;
};

// sums[r][c] = (accumulate ? sums[r][c] : 0) + sum_{k < depth} a[r * a_stride + k] panel[k][c]
// for r < rows and c < kPanelColumns, rows of sums_stride sums; rows: at most kMicrokernelRows,
// where the kernel does not say more. Each sum is one chain of fused multiply-adds in the order of
// k, whatever `rows` is and wherever the chain is cut. For bf16 a k is a pair and `a` holds the
// pairs side by side (floats for the plain kernel). Meanwhile `ahead` is fetched.
template <typename A, typename W>
struct MicrokernelArguments {
  const A* a;
  int64_t a_stride;
  const W* panel;
  int64_t depth;
  int rows;
  bool accumulate;
  float* sums;
  LinesAhead ahead = {};
  int64_t sums_stride = kPanelColumns;  // with quantised weights always
};

// A group of a row of activations, rounded as kernels/quantized_group.h says, for Panel's weights.
// T: int8_t, or int16_t for the plain kernel, with the first, the third, the second and the fourth
// of each four values. Whole cache lines, where values fill some: matrix registers load a row that
// lies across two of them five times as slowly.
template <typename T, typename Panel>
struct RoundedGroup {
  alignas(Panel::kGroup % 64 == 0 ? 64 : sizeof(float)) T values[Panel::kGroup];
  float scale;
  int32_t offset;  // -Panel::kOffset times the sum of the values, which takes the weights' off
};

// Calls tile(rows) with the number of a tile's rows as a type, a std::integral_constant<int>.
template <typename Tile>
void ForRows(int rows, const Tile& tile) {
  switch (rows) {
    case 1:
      return tile(std::integral_constant<int, 1>());
    case 2:
      return tile(std::integral_constant<int, 2>());
    case 3:
      return tile(std::integral_constant<int, 3>());
    case 4:
      return tile(std::integral_constant<int, 4>());
    case 5:
      return tile(std::integral_constant<int, 5>());
    default:
      return tile(std::integral_constant<int, kMicrokernelRows>());
  }
}

void MicrokernelF32(const MicrokernelArguments<float, float>& tile);

// Weights expanded to f32; `a` is already rounded to bf16 values.
void MicrokernelBF16Plain(const MicrokernelArguments<float, BF16>& tile);

// The pairs of `depth` rows of a panel as 2 depth rows of f32, [2 depth][kPanelColumns].
void ExpandPairs(const BF16* panel, int64_t depth, float* expanded);

// With the processor's bf16 dot product. REQUIRES: HaveBF16Dot().
bool HaveBF16Dot();
// Whether that is the faster kernel: Intel's processors run it at half the rate of f32
// multiply-adds (79 against 158 GFLOP/s on a Sapphire Rapids core), AMD's at twice that rate.
bool FastBF16Dot();
void MicrokernelBF16Dot(const MicrokernelArguments<BF16, BF16>& tile);

// Quantised weights, Int8Panel or Int4Panel: a k is a group, of which each 256 bytes are a step
// of FetchAhead, and
//   sums[r][c] += float(dot of group k) a.scale panel.scales[c]
// as one product and one multiply-add. Both give the same bits where there are fused multiply-adds.
template <typename Panel>
using QuantizedTile = MicrokernelArguments<RoundedGroup<int8_t, Panel>, Panel>;
template <typename Panel>
using PlainQuantizedTile = MicrokernelArguments<RoundedGroup<int16_t, Panel>, Panel>;
template <typename Panel>
void MicrokernelQuantizedPlain(const PlainQuantizedTile<Panel>& tile);
// With the processor's dot product of bytes. REQUIRES: HaveInt8Dot().
bool HaveInt8Dot();
template <typename Panel>
void MicrokernelQuantizedDot(const QuantizedTile<Panel>& tile);

// Rounds n floats into groups of activations.
template <typename Panel>
void RoundToInt8(const float* x, int64_t n, RoundedGroup<int8_t, Panel>* groups);
template <typename Panel>
void RoundToInt16(const float* x, int64_t n, RoundedGroup<int16_t, Panel>* groups);

// Rounds n floats to bf16, to nearest even, and pads with a zero to an even number. The first gives
// bf16 values as floats; the second may flush subnormals to zero. REQUIRES of the second:
// HaveBF16Dot().
void RoundToBF16Plain(const float* x, int64_t n, float* rounded);
void RoundToBF16Dot(const float* x, int64_t n, BF16* rounded);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_MICROKERNEL_H_
