#include "kernels/cpu/conv/toeplitz.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {
namespace {

// The rows of u side by side, [tokens][kToeplitzChannels], zero beyond its width.
void Pack(const TimeSeries& u, float* panel) {
  for (int64_t t = 0; t < u.tokens; ++t, panel += kToeplitzChannels) {
    std::copy_n(u.Row(t), u.width, panel);
    std::fill(panel + u.width, panel + kToeplitzChannels, 0.0f);
  }
}

}  // namespace

void ToeplitzProduct(const float* taps, const TimeSeries& u, const TimeSeries& y) {
  assert(u.width <= kToeplitzChannels && y.width == u.width && y.tokens == u.tokens);
  float* panel = ThreadScratch<float>(ScratchUse::kConvolution, u.tokens * kToeplitzChannels);
  Pack(u, panel);
  float sums[kSmallGemmRows * kToeplitzChannels];
  for (int64_t t = 0; t < u.tokens; t += kSmallGemmRows) {
    const int64_t rows = std::min<int64_t>(kSmallGemmRows, u.tokens - t);
    // Row t of the matrix is K[t], ..., K[0], 0, ...: the taps from K[t] on. The rows of a tile end
    // with its last time, the earlier ones in zeros.
    SmallGemm({.a = {taps - t, -1, 1},
               .b = panel,
               .b_row = kToeplitzChannels,
               .c = sums,
               .c_row = kToeplitzChannels,
               .rows = rows,
               .cols = kToeplitzChannels,
               .depth = t + rows,
               .accumulate = false});
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(sums + r * kToeplitzChannels, y.width, y.Row(t + r));
    }
  }
}

}  // namespace hippodrome::cpu
