// Figure 4 of BiGS: the kernels of each layer over all relative positions.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

#include "tools/plots/bigs_figures.h"

namespace hippodrome {
namespace {

constexpr int kPanelsPerRow = 4;
constexpr int kPanelWidth = 250;  // with labels and margins
constexpr int kPanelHeight = 136;
constexpr int kLeft = 56;  // of a panel: the scale
constexpr int kTop = 22;   // the layer's number
constexpr int kWidth = 180;
constexpr int kHeight = 80;
constexpr int kHead = 64;  // title, caption and colour key
constexpr int64_t kMostPoints = 512;
constexpr const char* kForwardColor = "#1f5fa8";
constexpr const char* kBackwardColor = "#c8501e";

// The largest magnitude of all kernels of a layer.
float LargestOf(const EncoderKernels& kernels, int64_t layer) {
  float largest = 0;
  for (int64_t head = 0; head < kernels.heads; ++head) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      for (const float k : kernels.Of(layer, direction, head)) {
        largest = std::max(largest, std::abs(k));
      }
    }
  }
  return largest;
}

// From the middle of the panel outwards; `side`: -1 to the left, 1 to the right.
std::string Curve(std::span<const float> kernel, float largest, int side, const char* color) {
  const auto length = static_cast<int64_t>(kernel.size());
  const int64_t points = std::min(length, kMostPoints);
  const double step = kWidth / 2.0 / static_cast<double>(std::max<int64_t>(length - 1, 1));
  std::string path;
  for (int64_t i = 0; i < points; ++i) {
    const int64_t begin = i * length / points;
    const int64_t end = (i + 1) * length / points;
    float value = 0;
    for (int64_t l = begin; l < end; ++l) value = std::max(value, std::abs(kernel[l]));
    const double height = largest > 0 ? std::min<double>(value / largest, 1) : 0;
    char text[48];
    std::snprintf(text, sizeof(text), "%c%.2f %.2f", i == 0 ? 'M' : 'L',
                  kLeft + kWidth / 2.0 + side * step * static_cast<double>(begin),
                  kTop + kHeight * (1 - height));
    path += text;
  }
  return "<path fill=\"none\" stroke=\"" + std::string(color) + "\" d=\"" + path + "\"/>\n";
}

Drawing Panel(const EncoderKernels& kernels, int64_t layer) {
  const float largest = LargestOf(kernels, layer);
  const std::string last = std::to_string(kernels.length - 1);
  const int below = kTop + kHeight + 14;
  std::string svg = SvgText(kLeft, kTop - 6, "layer " + std::to_string(layer));
  svg += SvgFrame(kLeft, kTop, kWidth, kHeight);
  for (int64_t head = 0; head < kernels.heads; ++head) {
    svg += Curve(kernels.Of(layer, Direction::kForward, head), largest, -1, kForwardColor);
    svg += Curve(kernels.Of(layer, Direction::kBackward, head), largest, 1, kBackwardColor);
  }
  svg += SvgText(kLeft - 4, kTop + 10, Label(largest), "end");
  svg += SvgText(kLeft - 4, kTop + kHeight, "0", "end");
  svg += SvgText(kLeft, below, "-" + last, "middle");
  svg += SvgText(kLeft + kWidth / 2, below, "0", "middle");
  svg += SvgText(kLeft + kWidth, below, last, "middle");
  return {.width = kPanelWidth, .height = kPanelHeight, .svg = svg};
}

std::string Key() {
  return SvgRect(0, 44, 18, 4, kForwardColor) +
         SvgText(24, 50, "forward SSM: |K[j]| at -j, tokens before") +
         SvgRect(300, 44, 18, 4, kBackwardColor) +
         SvgText(324, 50, "backward SSM: |K[j]| at +j, tokens after");
}

}  // namespace

Drawing DrawBigsFigure4(const EncoderKernels& kernels) {
  const auto layers = static_cast<int>(kernels.layers);
  const int rows = (layers + kPanelsPerRow - 1) / kPanelsPerRow;
  std::string svg = SvgText(0, 14, "Kernels of each layer: |K| over all relative positions");
  svg += SvgText(0, 32,
                 "Horizontal: relative position. D is not added. Each layer is scaled to its "
                 "largest value, at the left.");
  svg += Key();
  for (int layer = 0; layer < layers; ++layer) {
    svg += SvgAt(layer % kPanelsPerRow * kPanelWidth, kHead + layer / kPanelsPerRow * kPanelHeight,
                 Panel(kernels, layer));
  }
  return {.width = kPanelsPerRow * kPanelWidth, .height = kHead + rows * kPanelHeight, .svg = svg};
}

}  // namespace hippodrome
