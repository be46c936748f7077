// Pictures of an encoder's kernels, as in Figures 3 and 4 of BiGS.
#ifndef HIPPODROME_TOOLS_PLOTS_BIGS_FIGURES_H_
#define HIPPODROME_TOOLS_PLOTS_BIGS_FIGURES_H_

#include <string>
#include <vector>

#include "tools/plots/encoder_kernels.h"
#include "tools/plots/svg.h"

namespace hippodrome {

// How much a token hears of the one at each relative position -lags .. lags, [2 lags + 1]:
// |K_f[j]| at -j, |K_b[j]| at +j, at 0 the larger of both; D is not added. REQUIRES: lags < length.
std::vector<float> ByPosition(const EncoderKernels& kernels, int64_t layer, int64_t head,
                              int64_t lags);

// Figure 3: a row of cells for each layer and head, a column for each position -10 .. 10, shades
// from the smallest to the largest value of the picture.
Drawing DrawBigsFigure3(const EncoderKernels& kernels);

// Figure 4: for each layer and head two curves, forward to the left and backward to the right of 0,
// over all positions. Each layer is scaled to its largest value. A curve has at most 512 points,
// each the largest of its positions.
Drawing DrawBigsFigure4(const EncoderKernels& kernels);

// The file with both.
std::string PlotBigsFigures(const EncoderKernels& kernels);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_PLOTS_BIGS_FIGURES_H_
