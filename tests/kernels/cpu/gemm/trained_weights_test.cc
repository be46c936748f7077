#include "kernels/cpu/gemm/trained_weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::trained_weights_test {
namespace {

using Values = std::vector<float>;

// The packing of host memory is tested by itself.
void ExpectPacked(ThreadPool& pool, const PackedWeights& packed, const Values& w, int64_t out,
                  int64_t in, DType dtype) {
  const HostMatrix host = {w.data(), DType::kF32, out, in};
  const auto expected = PackLinear(pool, std::span(&host, 1), dtype);
  ASSERT_EQ(packed.panels(), expected->panels());
  const auto bytes = static_cast<size_t>(PackedWeights::PanelBytes(in, dtype));
  for (int64_t i = 0; i < packed.panels(); ++i) {
    EXPECT_EQ(std::memcmp(packed.panel(i), expected->panel(i), bytes), 0)
        << out << "x" << in << " panel " << i;
  }
}

Values Transpose(const Values& w, int64_t out, int64_t in) {
  Values transposed;
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t o = 0; o < out; ++o) transposed.push_back(w[static_cast<size_t>(o * in + i)]);
  }
  return transposed;
}

TEST(TrainedWeightsTest, HoldsBothPackingsOfStackedParts) {
  ThreadPool pool(2);
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (auto [out, in] : {std::pair{2, 1}, {3, 2}, {65, 31}, {129, 64}, {200, 515}, {530, 66}}) {
      const Values w = RandomValues(out * in, 1);
      const int64_t first = out / 2;
      const StridedMatrix upper(first, in, 3, {w.begin(), w.begin() + first * in});
      const StridedMatrix lower(out - first, in, 0, {w.begin() + first * in, w.end()});
      TrainedWeights weights(out, in, dtype);
      for (int repeat = 0; repeat < 2; ++repeat) {
        PackTrainedLinear(pool, std::vector<Tensor>{upper.view(), lower.view()}, weights);
        ExpectPacked(pool, weights, w, out, in, dtype);
        ExpectPacked(pool, weights.transposed(), Transpose(w, out, in), in, out, dtype);
      }
    }
  }
}

TEST(TrainedWeightsTest, RoundsTiesToEvenAndKeepsNaN) {
  const uint32_t bits[] = {0x3f808000, 0x3f818000, 0x3f818001, 0x7f800001, 0xff800000, 0x00000001};
  Values w;
  for (uint32_t b : bits) w.push_back(std::bit_cast<float>(b));
  for (int i = 0; i < 4; ++i) w.insert(w.end(), w.begin(), w.end());  // reaches whole vectors
  ThreadPool pool(1);
  const int64_t n = static_cast<int64_t>(w.size());
  const StridedMatrix row(1, n, 0, w);
  TrainedWeights weights(1, n, DType::kBF16);
  PackTrainedLinear(pool, std::vector<Tensor>{row.view()}, weights);
  ExpectPacked(pool, weights, w, 1, n, DType::kBF16);
  ExpectPacked(pool, weights.transposed(), w, n, 1, DType::kBF16);
}

}  // namespace
}  // namespace hippodrome::cpu::trained_weights_test
