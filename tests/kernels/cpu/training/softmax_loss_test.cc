#include "kernels/cpu/training/softmax_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::softmax_loss_test {
namespace {

using Values = std::vector<float>;

SoftmaxLanes NoLanes() {
  SoftmaxLanes lanes;
  std::fill_n(lanes.largest, kSoftmaxLanes, kNoLogit);
  std::fill_n(lanes.sum, kSoftmaxLanes, 0.0f);
  return lanes;
}

// Logits in pieces of `piece`, shared by two sets of lanes.
SoftmaxTotal Total(Values& logits, const Values& bias, int64_t piece) {
  SoftmaxLanes lanes[3] = {NoLanes(), NoLanes(), NoLanes()};  // the second remains unused
  const int64_t n = static_cast<int64_t>(logits.size());
  for (int64_t i = 0; i < n; i += piece) {
    ExtendSoftmaxLanes(logits.data() + i, bias.empty() ? nullptr : bias.data() + i,
                       std::min(piece, n - i), lanes[i / piece % 2 * 2]);
  }
  return SumSoftmaxLanes(lanes, 2, 2);
}

TEST(SoftmaxLanesTest, AddsPiecesOfEverySize) {
  for (int64_t n : {1, 15, 16, 33, 100, 2051}) {
    for (int64_t piece : {1, 16, 32, 37, 64}) {
      for (bool biased : {false, true}) {
        Values logits = RandomValues(n, 1, 20);
        const Values bias = biased ? RandomValues(n, 2) : Values();
        Values sums = logits;
        for (size_t i = 0; i < bias.size(); ++i) sums[i] += bias[i];
        const SoftmaxTotal total = Total(logits, bias, piece);
        EXPECT_EQ(logits, sums);
        const double largest = *std::max_element(sums.begin(), sums.end());
        double expected = 0;
        for (float logit : sums) expected += std::exp(logit - largest);
        EXPECT_EQ(total.largest, largest);
        // Each term is scaled anew at each new maximum of its lane, by an exponential whose
        // argument is rounded; a lane has at most n pieces.
        EXPECT_NEAR(total.sum, expected, Gamma(50 + 4 * n) * expected) << n << ", " << piece;
      }
    }
  }
}

TEST(SoftmaxLanesTest, SurvivesExtremeLogits) {
  Values logits = {-INFINITY, 1e30f, 3e38f, -3e38f};
  logits.resize(40, -INFINITY);
  const SoftmaxTotal total = Total(logits, {}, 32);
  EXPECT_EQ(total.largest, double{3e38f});
  EXPECT_EQ(total.sum, 1);
}

TEST(SoftmaxLanesTest, ReplacesLogitsByProbabilities) {
  for (int64_t n : {1, 16, 31, 64}) {
    const Values logits = RandomValues(n, 1, 5);
    const Values bias = RandomValues(n, 2);
    Values p = logits;
    ReplaceByProbabilities(p.data(), bias.data(), n, 6, 0.25);
    for (size_t i = 0; i < p.size(); ++i) {
      const double expected = 0.25 * std::exp(double{logits[i]} + bias[i] - 6);
      EXPECT_NEAR(p[i], expected, expected * 20 * kUnitRoundoff);
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu::softmax_loss_test
