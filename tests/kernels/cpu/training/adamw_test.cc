#include "kernels/cpu/training/adamw.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/twin_matrix.h"

namespace hippodrome::cpu::adamw_test {
namespace {

constexpr double kTrace = 1e-6;  // traces of PyTorch reproduce to this

struct Problem {
  Problem(int64_t rows, int64_t cols, int64_t gap)
      : m(rows, cols, gap, std::vector<float>(size_t(rows * cols))),
        v(rows, cols, 0, std::vector<float>(size_t(rows * cols))),
        w(rows, cols, gap, 1) {}

  // Five steps with gradients of different sizes, under a schedule and clipping.
  void Train(int threads) {
    ThreadPool pool(threads);
    for (int64_t t = 1; t <= 5; ++t) {
      const TwinMatrix gradient(w.actual().rows, w.actual().cols, 1, static_cast<uint32_t>(t + 10));
      const AdamWStep step = {.rate = 0.01 * double(t),
                              .beta1 = 0.9,
                              .beta2 = 0.98,
                              .epsilon = 1e-6,
                              .weight_decay = 0.1,
                              .gradient_scale = 1 / double(t),
                              .step = t};
      AdamW(pool, step, gradient.actual(), m.actual(), v.actual(), w.actual());
      Reference().AdamW(step, gradient.expected(), m.expected(), v.expected(), w.expected());
    }
  }

  TwinMatrix m, v, w;
};

TEST(AdamWTest, FiveStepsFollowTheFormula) {
  for (const int64_t cols : {1, 15, 16, 100, 20000}) {
    for (const int64_t gap : {0, 3}) {
      Problem p(3, cols, gap);
      p.Train(2);
      EXPECT_LE(p.w.Error(), kTrace);
      EXPECT_LE(p.m.Error(), Gamma(20));
      EXPECT_LE(p.v.Error(), Gamma(20));
    }
  }
}

TEST(AdamWTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  Problem one(3, 30000, 0);
  Problem three(3, 30000, 0);
  one.Train(1);
  three.Train(3);
  EXPECT_EQ(one.w.values(), three.w.values());
}

TEST(AdamWTest, AnUntouchedElementOnlyDecays) {
  ThreadPool pool(1);
  const StridedMatrix zero(1, 3, 0);
  const StridedMatrix m(1, 3, 0);
  const StridedMatrix v(1, 3, 0);
  const StridedMatrix w(1, 3, 0, {1, -2, 0});
  AdamW(pool, {.rate = 0.5, .weight_decay = 0.5}, zero.view(), m.view(), v.view(), w.view());
  EXPECT_EQ(w.values(), std::vector<float>({0.75f, -1.5f, 0}));
}

}  // namespace
}  // namespace hippodrome::cpu::adamw_test
