#include "kernels/cpu/conv/direct_conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "kernels/cpu/conv/tile.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::direct_conv_test {
namespace {

// Rows of 16 floats, `values` behind `before` rows of zeros, with room for reads and writes beyond.
class Series {
 public:
  Series(int64_t before, std::span<const float> values)
      : rows_(static_cast<int64_t>(values.size()) / kTileChannels),
        memory_(NewMatrix(before + rows_ + kSeriesPadding, kTileChannels, DType::kF32)),
        first_(F32Row(memory_, before)) {
    CopyIn(values, memory_.view.Rows(before, rows_));
  }
  float* first() const { return first_; }
  std::vector<float> values() const { return {first_, first_ + rows_ * kTileChannels}; }

 private:
  int64_t rows_;
  OwnedTensor memory_;
  float* first_;
};

std::vector<float> RandomRows(int64_t rows, uint32_t seed) {
  return RandomValues(rows * kTileChannels, seed);
}

std::vector<float> Filtered(std::span<const float> kernel, const Series& x, int64_t tokens) {
  const Series y(0, RandomRows(tokens, 3));
  Fir(Series(0, kernel).first(), static_cast<int64_t>(kernel.size()) / kTileChannels, x.first(),
      tokens, y.first());
  return y.values();
}

TEST(DirectConvTest, TheFilterAfterZerosIsTheCausalConvolution) {
  for (const int64_t count : {4, 8, 64}) {
    for (const int64_t tokens : {1, 7, 8, 9, 100}) {
      const std::vector<float> kernel = RandomRows(count, 1);
      const std::vector<float> x = RandomRows(tokens, 2);
      const Series y(0, x);
      ConvolveDirect(Series(0, kernel).first(), count, Series(kSeriesPadding, x).first(), tokens,
                     y.first());
      EXPECT_EQ(Filtered(kernel, Series(count - 1, x), tokens), y.values())
          << count << " taps, " << tokens << " tokens";
    }
  }
}

TEST(DirectConvTest, TheFilterReadsWhatCameBefore) {
  constexpr int64_t kCount = 8;
  constexpr int64_t kTokens = 20;
  const std::vector<float> kernel = RandomRows(kCount, 1);
  const std::vector<float> x = RandomRows(kCount - 1 + kTokens, 2);
  const Series series(0, x);
  const Series y(0, RandomRows(kTokens, 3));
  Fir(Series(0, kernel).first(), kCount, series.first() + (kCount - 1) * kTileChannels, kTokens,
      y.first());
  for (int64_t i = 0; i < kTokens * kTileChannels; ++i) {
    double sum = 0;
    double magnitude = 0;
    for (int64_t j = 0; j < kCount; ++j) {
      const auto tap = static_cast<size_t>(j * kTileChannels + i % kTileChannels);
      const auto at = static_cast<size_t>(i + (kCount - 1 - j) * kTileChannels);
      const double term = double{kernel[tap]} * x[at];
      sum += term;
      magnitude += std::abs(term);
    }
    EXPECT_NEAR(y.first()[i], sum, Gamma(kCount) * magnitude) << i;
  }
}

}  // namespace
}  // namespace hippodrome::cpu::direct_conv_test
