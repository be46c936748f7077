#include "tools/kernel_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hippodrome {
namespace {

constexpr int64_t kMaxColumns = 256;
constexpr int64_t kMaxRows = 128;
constexpr int kPanelWidth = 512;
constexpr int kPanelHeight = 160;
constexpr int kMargin = 28;

// White for 0, red for 1, blue for -1.
std::string Color(float value) {
  const int fade = 255 - static_cast<int>(std::lround(255 * std::min(std::abs(value), 1.0f)));
  char text[8];
  if (value >= 0) {
    std::snprintf(text, sizeof(text), "#ff%02x%02x", fade, fade);
  } else {
    std::snprintf(text, sizeof(text), "#%02x%02xff", fade, fade);
  }
  return text;
}

struct Grid {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> cells;  // [rows, columns], relative to the largest magnitude
};

Grid Reduce(const std::vector<float>& values, int64_t rows, int64_t length) {
  Grid grid{std::min(rows, kMaxRows), std::min(length, kMaxColumns)};
  grid.cells.resize(grid.rows * grid.columns);
  float largest = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t l = 0; l < length; ++l) {
      float& cell = grid.cells[r * grid.rows / rows * grid.columns + l * grid.columns / length];
      const float value = values[r * length + l];
      if (std::abs(value) > std::abs(cell)) cell = value;
      largest = std::max(largest, std::abs(value));
    }
  }
  if (largest > 0) {
    for (float& cell : grid.cells) cell /= largest;
  }
  return grid;
}

std::string Panel(const std::string& title, const Grid& grid, int x, int y) {
  const double width = static_cast<double>(kPanelWidth) / static_cast<double>(grid.columns);
  const double height = static_cast<double>(kPanelHeight) / static_cast<double>(grid.rows);
  char text[256];
  std::snprintf(text, sizeof(text), "<g transform=\"translate(%d %d)\"><text y=\"-6\">%s</text>\n",
                x, y, title.c_str());
  std::string svg = text;
  for (int64_t r = 0; r < grid.rows; ++r) {
    // One rectangle per run of equal colours.
    for (int64_t c = 0; c < grid.columns;) {
      const std::string color = Color(grid.cells[r * grid.columns + c]);
      int64_t end = c + 1;
      while (end < grid.columns && Color(grid.cells[r * grid.columns + end]) == color) ++end;
      std::snprintf(text, sizeof(text),
                    "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n",
                    static_cast<double>(c) * width, static_cast<double>(r) * height,
                    static_cast<double>(end - c) * width, height, color.c_str());
      if (color != "#ffffff") svg += text;
      c = end;
    }
  }
  std::snprintf(text, sizeof(text),
                "<rect width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/></g>\n",
                kPanelWidth, kPanelHeight);
  return svg + text;
}

}  // namespace

std::string PlotKernels(const std::vector<LayerKernels>& layers, int64_t length) {
  const int width = 2 * kPanelWidth + 3 * kMargin;
  const int height = static_cast<int>(layers.size()) * (kPanelHeight + kMargin) + kMargin;
  char text[256];
  std::snprintf(text, sizeof(text),
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                width, height);
  std::string svg = text;
  int y = kMargin;
  for (const LayerKernels& layer : layers) {
    const std::string name = "layer " + std::to_string(layer.layer);
    const std::string lags = ", lags 0 to " + std::to_string(length - 1);
    svg += Panel(name + ": diagonal SSM" + lags, Reduce(layer.diagonal, layer.heads, length),
                 kMargin, y);
    svg += Panel(name + ": shift SSM" + lags, Reduce(layer.shift, layer.d_model, length),
                 kPanelWidth + 2 * kMargin, y);
    y += kPanelHeight + kMargin;
  }
  return svg + "</svg>\n";
}

}  // namespace hippodrome
