#include "kernels/cpu/rows/dropout.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/twin_matrix.h"

namespace hippodrome::cpu::dropout_test {
namespace {

using Values = std::vector<float>;

Values Dropped(double p, uint64_t seed, int64_t rows, int64_t cols, int threads = 2) {
  ThreadPool pool(threads);
  const StridedMatrix x(rows, cols, 3, Values(size_t(rows * cols), 1.0f));
  Drop(pool, p, seed, x.view());
  return x.values();
}

double Share(const Values& values) {
  return double(std::count(values.begin(), values.end(), 0.0f)) / double(values.size());
}

TEST(DropoutTest, DropsAndScalesTheElementsOfTheReference) {
  for (const int64_t cols : {1, 15, 16, 33, 200}) {
    ThreadPool pool(2);
    const TwinMatrix x(37, cols, 2, 1);
    Drop(pool, 0.3, 5, x.actual());
    Reference().Drop(0.3, 5, x.expected());
    EXPECT_LE(x.Error(), Gamma(2) / 0.7);
  }
}

TEST(DropoutTest, KeepsEverythingAtZero) { EXPECT_EQ(Dropped(0, 1, 3, 50), Values(150, 1.0f)); }

// Of n draws the share errs by 5 deviations sqrt(p (1 - p) / n) once in two million.
TEST(DropoutTest, DropsTheShareThatWasAskedFor) {
  constexpr int64_t kRows = 500, kCols = 400;
  for (const double p : {0.001, 0.1, 0.5, 0.9}) {
    const double deviation = std::sqrt(p * (1 - p) / double(kRows * kCols));
    EXPECT_NEAR(Share(Dropped(p, 7, kRows, kCols)), p, 5 * deviation);
  }
}

// Independent halves agree in half of their elements.
TEST(DropoutTest, SeedsAndRowsDrawIndependently) {
  constexpr int64_t kRows = 400, kCols = 256;
  const Values a = Dropped(0.5, 1, kRows, kCols);
  const Values b = Dropped(0.5, 2, kRows, kCols);
  double seeds = 0, rows = 0, columns = 0;
  for (size_t i = 0; i + kCols < a.size(); ++i) {
    seeds += a[i] == b[i];
    rows += a[i] == a[i + kCols];
    columns += a[i] == a[i + 1];
  }
  const double n = double(a.size() - kCols);
  for (const double same : {seeds, rows, columns}) {
    EXPECT_NEAR(same / n, 0.5, 5 * 0.5 / std::sqrt(n));
  }
}

TEST(DropoutTest, AnElementIsDrawnByItsPlaceAlone) {
  const Values all = Dropped(0.5, 9, 40, 70, 3);
  const Values part = Dropped(0.5, 9, 40, 33, 1);
  for (int64_t r = 0; r < 40; ++r) {
    for (int64_t c = 0; c < 33; ++c) EXPECT_EQ(part[size_t(r * 33 + c)], all[size_t(r * 70 + c)]);
  }
}

}  // namespace
}  // namespace hippodrome::cpu::dropout_test
