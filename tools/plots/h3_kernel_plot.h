// Pictures of convolution kernels.
#ifndef HIPPODROME_TOOLS_PLOTS_H3_KERNEL_PLOT_H_
#define HIPPODROME_TOOLS_PLOTS_H3_KERNEL_PLOT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/plots/h3_kernels.h"

namespace hippodrome {

// An SVG with one panel per layer and kind: each row of pixels is a head or channel, left is lag 0,
// colour is the value relative to the panel's largest magnitude (red positive, blue negative).
// Panels have at most 256 x 128 cells; larger kernels show the value of largest magnitude per cell.
std::string PlotH3Kernels(const std::vector<H3LayerKernels>& layers, int64_t length);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_PLOTS_H3_KERNEL_PLOT_H_
