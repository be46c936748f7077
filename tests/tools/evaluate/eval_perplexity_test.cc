#include "tools/evaluate/eval_perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/make_backend.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::eval_perplexity_test {
namespace {

TEST(PerplexityTest, LikelihoodIgnoresPaddedLogits) {
  const std::vector<float> logits = {0, std::log(3.0f), 100};
  EXPECT_NEAR(NegativeLogLikelihood(logits, 2, 0), std::log(4.0), 1e-6);
  EXPECT_NEAR(NegativeLogLikelihood(logits, 2, 1), std::log(4.0 / 3.0), 1e-6);
}

TEST(PerplexityTest, ScoresEveryWindowFromAZeroStateAndDropsTheTail) {
  const auto cpu = MakeCpuBackend({.threads = 1});
  const auto model = MakeTestModel(*cpu, TinyConfig());
  const auto ids = RandomIds(35, 40, 9);
  const auto p = EvaluatePerplexity(*cpu, *model, ids, 10);
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(p->tokens, 30);
  double sum = 0;
  ASSERT_EQ(p->windows.size(), 3u);
  for (int w = 0; w < 3; ++w) {
    const double nll =
        EvaluatePerplexity(*cpu, *model, std::span(ids).subspan(10 * w, 11), 10)->nll;
    EXPECT_EQ(p->windows[w].values, 10);
    EXPECT_NEAR(p->windows[w].sum / 10, nll, 1e-9);
    sum += nll;
  }
  EXPECT_NEAR(p->nll, sum / 3, 1e-9);
  EXPECT_NEAR(p->perplexity, std::exp(p->nll), 1e-9);

  const auto reference = MakeReferenceBackend();
  const auto truth = MakeTestModel(*reference, TinyConfig());
  EXPECT_NEAR(p->nll, EvaluatePerplexity(*reference, *truth, ids, 10)->nll, 1e-4);
}

TEST(PerplexityTest, TakesTheTypeOfStates) {
  const auto cpu = MakeCpuBackend({.threads = 1});
  const auto model = MakeTestModel(*cpu, TinyConfig());
  const auto ids = RandomIds(41, 40, 9);
  const ForwardMode half{.h3_state = DType::kBF16};
  EXPECT_NE(EvaluatePerplexity(*cpu, *model, ids, 20, half)->nll,
            EvaluatePerplexity(*cpu, *model, ids, 20)->nll);
}

TEST(PerplexityTest, NeedsAWindowAndItsSuccessor) {
  const auto cpu = MakeCpuBackend({.threads = 1});
  const auto model = MakeTestModel(*cpu, TinyConfig());
  EXPECT_FALSE(EvaluatePerplexity(*cpu, *model, RandomIds(10, 40, 1), 10).ok());
  EXPECT_FALSE(EvaluatePerplexity(*cpu, *model, {}, 10).ok());
}

}  // namespace
}  // namespace hippodrome::eval_perplexity_test
