#include "kernels/cpu/conv/toeplitz.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/scratch.h"
#include "kernels/cpu/gemm/packed_weights.h"

namespace hippodrome::cpu {
namespace {

// The rows of u side by side, [tokens][kPanelColumns], zero beyond its width.
void Pack(const TimeSeries& u, float* panel) {
  for (int64_t t = 0; t < u.tokens; ++t, panel += kPanelColumns) {
    std::copy_n(u.Row(t), u.width, panel);
    std::fill(panel + u.width, panel + kPanelColumns, 0.0f);
  }
}

}  // namespace

void ToeplitzProduct(const float* taps, const TimeSeries& u, const TimeSeries& y) {
  assert(u.width <= kPanelColumns && y.width == u.width && y.tokens == u.tokens);
  float* panel = ThreadScratch<float>(ScratchUse::kConvolution, u.tokens * kPanelColumns);
  Pack(u, panel);
  float sums[kMicrokernelRows * kPanelColumns];
  for (int64_t t = 0; t < u.tokens; t += kMicrokernelRows) {
    const int64_t rows = std::min<int64_t>(kMicrokernelRows, u.tokens - t);
    // Row t of the matrix is K[t], ..., K[0], 0, ...: the taps from K[t] on. The rows of a tile end
    // with its last time, the earlier ones in zeros.
    MicrokernelF32({.a = taps - t,
                    .a_stride = -1,
                    .panel = panel,
                    .depth = t + rows,
                    .rows = static_cast<int>(rows),
                    .accumulate = false,
                    .sums = sums});
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(sums + r * kPanelColumns, y.width, y.Row(t + r));
    }
  }
}

}  // namespace hippodrome::cpu
