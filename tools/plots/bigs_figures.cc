#include "tools/plots/bigs_figures.h"

#include <algorithm>
#include <cmath>

namespace hippodrome {

std::vector<float> ByPosition(const EncoderKernels& kernels, int64_t layer, int64_t head,
                              int64_t lags) {
  const auto forward = kernels.Of(layer, Direction::kForward, head);
  const auto backward = kernels.Of(layer, Direction::kBackward, head);
  std::vector<float> values(2 * lags + 1);
  for (int64_t j = 1; j <= lags; ++j) {
    values[lags - j] = std::abs(forward[j]);
    values[lags + j] = std::abs(backward[j]);
  }
  values[lags] = std::max(std::abs(forward[0]), std::abs(backward[0]));
  return values;
}

std::string PlotBigsFigures(const EncoderKernels& kernels) {
  constexpr int kMargin = 20;
  const Drawing near = DrawBigsFigure3(kernels);
  const Drawing curves = DrawBigsFigure4(kernels);
  Drawing both{.width = std::max(near.width, curves.width) + 2 * kMargin,
               .height = near.height + curves.height + 3 * kMargin};
  both.svg = SvgAt(kMargin, kMargin, near) + SvgAt(kMargin, near.height + 2 * kMargin, curves);
  return SvgFile(both);
}

}  // namespace hippodrome
