// Figure 3 of BiGS: the kernels of all layers near the token itself.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "tools/plots/bigs_figures.h"

namespace hippodrome {
namespace {

constexpr int64_t kMostLags = 10;
constexpr int kCellWidth = 26;
constexpr int kCellHeight = 18;
constexpr int kGridLeft = 64;  // axis title and layer numbers
constexpr int kGridTop = 44;   // title and caption
constexpr int kBelow = 44;     // positions and axis title
constexpr int kKeyGap = 24;
constexpr int kKeyWidth = 16;
constexpr int kKeyLabels = 72;
constexpr int kCaptionWidth = 960;

// From almost white at 0 to dark blue at 1.
std::string CellColor(double scaled) {
  constexpr std::array kLow = {247, 251, 255};
  constexpr std::array kHigh = {8, 48, 107};
  std::array<int, 3> mixed{};
  for (size_t i = 0; i < mixed.size(); ++i) {
    mixed[i] = static_cast<int>(std::lround(kLow[i] + scaled * (kHigh[i] - kLow[i])));
  }
  char text[8];
  std::snprintf(text, sizeof(text), "#%02x%02x%02x", mixed[0], mixed[1], mixed[2]);
  return text;
}

struct Range {
  float least = 0;
  float most = 0;

  // 0 for the least value, 1 for the most.
  double Scale(float value) const {
    const double scaled = (double{value} - least) / (double{most} - least);
    return scaled >= 0 ? std::min(scaled, 1.0) : 0;  // 0 too where that is no number
  }
};

Range RangeOf(const std::vector<std::vector<float>>& rows) {
  Range range{rows[0][0], rows[0][0]};
  for (const auto& row : rows) {
    const auto [least, most] = std::minmax_element(row.begin(), row.end());
    range = {std::min(range.least, *least), std::max(range.most, *most)};
  }
  return range;
}

std::string RowLabel(const EncoderKernels& kernels, int64_t row) {
  const std::string layer = std::to_string(row / kernels.heads);
  return kernels.heads == 1 ? layer : layer + "." + std::to_string(row % kernels.heads);
}

std::string ScaleKey(int x, int height, const Range& range) {
  std::string svg =
      "<defs><linearGradient id=\"shades\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">"
      "<stop offset=\"0\" stop-color=\"" +
      CellColor(0) + "\"/><stop offset=\"1\" stop-color=\"" + CellColor(1) +
      "\"/></linearGradient></defs>\n";
  svg += SvgRect(x, kGridTop, kKeyWidth, height, "url(#shades)");
  svg += SvgFrame(x, kGridTop, kKeyWidth, height);
  svg += SvgText(x + kKeyWidth + 6, kGridTop + 10, Label(range.most));
  svg += SvgText(x + kKeyWidth + 6, kGridTop + height, Label(range.least));
  return svg;
}

std::string Axes(const EncoderKernels& kernels, int64_t rows, int64_t lags, int width, int height) {
  std::string svg;
  for (int64_t row = 0; row < rows; ++row) {
    const int y = kGridTop + static_cast<int>(row) * kCellHeight + kCellHeight - 5;
    svg += SvgText(kGridLeft - 6, y, RowLabel(kernels, row), "end");
  }
  for (int64_t position = -lags; position <= lags; ++position) {
    const int x = kGridLeft + static_cast<int>(position + lags) * kCellWidth + kCellWidth / 2;
    svg += SvgText(x, kGridTop + height + 16, std::to_string(position), "middle");
  }
  svg += SvgVerticalText(14, kGridTop + height / 2, kernels.heads == 1 ? "layer" : "layer.head");
  svg += SvgText(kGridLeft + width / 2, kGridTop + height + 36, "relative position", "middle");
  return svg;
}

}  // namespace

Drawing DrawBigsFigure3(const EncoderKernels& kernels) {
  const int64_t lags = std::min(kMostLags, kernels.length - 1);
  std::vector<std::vector<float>> rows;
  for (int64_t row = 0; row < kernels.layers * kernels.heads; ++row) {
    rows.push_back(ByPosition(kernels, row / kernels.heads, row % kernels.heads, lags));
  }
  const Range range = RangeOf(rows);
  const int width = static_cast<int>(2 * lags + 1) * kCellWidth;
  const int height = static_cast<int>(rows.size()) * kCellHeight;
  std::string svg = SvgText(0, 14, "Kernels near the token: |K| by relative position");
  svg += SvgText(0, 32,
                 "-j: |K[j]| of the forward SSM; +j: of the backward SSM; 0: the larger of both. D "
                 "is not added. Shades from the least to the largest value.");
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t column = 0; column < rows[row].size(); ++column) {
      svg += SvgRect(kGridLeft + static_cast<int>(column) * kCellWidth,
                     kGridTop + static_cast<int>(row) * kCellHeight, kCellWidth, kCellHeight,
                     CellColor(range.Scale(rows[row][column])));
    }
  }
  svg += SvgFrame(kGridLeft, kGridTop, width, height);
  svg += Axes(kernels, static_cast<int64_t>(rows.size()), lags, width, height);
  svg += ScaleKey(kGridLeft + width + kKeyGap, height, range);
  return {.width = std::max(kGridLeft + width + kKeyGap + kKeyWidth + kKeyLabels, kCaptionWidth),
          .height = kGridTop + height + kBelow,
          .svg = svg};
}

}  // namespace hippodrome
