#include "tools/plots/h3_kernel_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace hippodrome {
namespace {

constexpr int64_t kMaxColumns = 256;
constexpr int64_t kMaxRows = 128;
constexpr int kImageWidth = 512;
constexpr int kImageHeight = 160;
constexpr int kMargin = 28;

// Shades of each colour: few, so that neighbours often share one.
constexpr int kShades = 24;

// -kShades .. kShades for -1 .. 1.
int Shade(float value) { return static_cast<int>(std::lround(value * kShades)); }

// White for 0, red for kShades, blue for -kShades.
std::string Color(int shade) {
  const int fade = 255 - std::abs(shade) * 255 / kShades;
  char text[8];
  if (shade >= 0) {
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

// One path per shade, made of runs of cells: short, and quick to draw.
std::string Cells(const Grid& grid) {
  std::map<int, std::string> runs;
  for (int64_t r = 0; r < grid.rows; ++r) {
    for (int64_t c = 0; c < grid.columns;) {
      const int shade = Shade(grid.cells[r * grid.columns + c]);
      int64_t end = c + 1;
      while (end < grid.columns && Shade(grid.cells[r * grid.columns + end]) == shade) ++end;
      runs[shade] +=
          "M" + std::to_string(c) + " " + std::to_string(r) + ".5h" + std::to_string(end - c);
      c = end;
    }
  }
  runs.erase(0);
  std::string svg;
  for (const auto& [shade, path] : runs) {
    svg += "<path stroke=\"" + Color(shade) + "\" d=\"" + path + "\"/>\n";
  }
  return svg;
}

std::string ImagePanel(const std::string& title, const Grid& grid, int x, int y) {
  char text[512];
  std::snprintf(text, sizeof(text),
                "<g transform=\"translate(%d %d)\"><text y=\"-6\">%s</text>\n"
                "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %lld %lld\" "
                "preserveAspectRatio=\"none\" shape-rendering=\"crispEdges\">\n",
                x, y, title.c_str(), kImageWidth, kImageHeight,
                static_cast<long long>(grid.columns), static_cast<long long>(grid.rows));
  std::string svg = text + Cells(grid) + "</svg>\n";
  std::snprintf(text, sizeof(text),
                "<rect width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/></g>\n",
                kImageWidth, kImageHeight);
  return svg + text;
}

}  // namespace

std::string PlotH3Kernels(const std::vector<H3LayerKernels>& layers, int64_t length) {
  const int width = 2 * kImageWidth + 3 * kMargin;
  const int height = static_cast<int>(layers.size()) * (kImageHeight + kMargin) + kMargin;
  char text[256];
  std::snprintf(text, sizeof(text),
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                width, height);
  std::string svg = text;
  int y = kMargin;
  for (const H3LayerKernels& layer : layers) {
    const std::string name = "layer " + std::to_string(layer.layer);
    const std::string lags = ", lags 0 to " + std::to_string(length - 1);
    svg += ImagePanel(name + ": diagonal SSM" + lags, Reduce(layer.diagonal, layer.heads, length),
                      kMargin, y);
    svg += ImagePanel(name + ": shift SSM" + lags, Reduce(layer.shift, layer.d_model, length),
                      kImageWidth + 2 * kMargin, y);
    y += kImageHeight + kMargin;
  }
  return svg + "</svg>\n";
}

}  // namespace hippodrome
