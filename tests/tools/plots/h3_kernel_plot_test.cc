#include "tools/plots/h3_kernel_plot.h"

#include <gtest/gtest.h>

namespace hippodrome::h3_kernel_plot_test {
namespace {

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(KernelPlotTest, DrawsOnePanelPerKernelWithItsExtremes) {
  const H3LayerKernels layer{
      .layer = 4, .heads = 2, .d_model = 1, .diagonal = {2, 0, 0, 0, -2, 1}, .shift = {1, 1, 0}};
  const std::string svg = PlotH3Kernels({layer}, 3);
  EXPECT_EQ(Count(svg, "<g "), 2);
  EXPECT_EQ(Count(svg, "layer 4: diagonal SSM, lags 0 to 2"), 1);
  EXPECT_EQ(Count(svg, "#ff0000"), 2);   // the largest of each panel
  EXPECT_EQ(Count(svg, "#0000ff"), 1);   // the most negative
  EXPECT_EQ(Count(svg, "#ff8080"), 1);   // half
  EXPECT_EQ(Count(svg, "M0 0.5h2"), 1);  // a run of equal cells
}

TEST(KernelPlotTest, ReducesLargeKernelsToTheCellsLargestMagnitude) {
  H3LayerKernels layer{.layer = 0, .heads = 1000, .d_model = 1};
  layer.diagonal.resize(1000 * 5000);
  layer.diagonal[777 * 5000 + 4321] = -3;
  layer.shift.resize(5000);
  const std::string svg = PlotH3Kernels({layer}, 5000);
  EXPECT_EQ(Count(svg, "#0000ff"), 1);
  EXPECT_LT(svg.size(), 3000u);
}

}  // namespace
}  // namespace hippodrome::h3_kernel_plot_test
