#include "tools/evaluate/positions/perplexity_by_length.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "engine/passes/forward.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"
#include "tools/evaluate/eval_perplexity.h"

namespace hippodrome::perplexity_by_length_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;
using IdSpan = std::span<const int32_t>;

// A log probability is rounded to f32, and the logits of a chunk cut elsewhere differ by some of
// their own roundings.
constexpr double kTolerance = 1e-5;

class PerplexityByLengthTest : public testing::Test {
 protected:
  PerplexityByLengthTest() { std::iota(bytes_.begin(), bytes_.end(), 1); }

  absl::StatusOr<PerplexityByLength> Evaluate(IdSpan ids, int64_t length, int64_t last_tokens) {
    return EvaluateByLength(*cpu_, *model_, CutWindows(ids, length), bytes_,
                            {.window = {.length = length}, .last_tokens = last_tokens});
  }
  // The mean of the successors of all of `ids` but the last, from place `first` on.
  double Direct(IdSpan ids, int64_t first) {
    double sum = 0;
    const int64_t width = model_->config().padded_vocab_size;
    const auto sink = [&](int64_t start, std::span<const float> logits) {
      for (int64_t r = 0; r < std::ssize(logits) / width; ++r) {
        if (start + r < first) continue;
        sum += NegativeLogLikelihood(logits.subspan(r * width, width), model_->config().vocab_size,
                                     ids[start + r + 1]);
      }
    };
    EXPECT_TRUE(Forward(*cpu_, *model_, ids.first(ids.size() - 1), {}, sink).ok());
    return sum / static_cast<double>(std::ssize(ids) - 1 - first);
  }

  const std::unique_ptr<Backend> cpu_ = MakeCpuBackend({.threads = 2});
  const std::unique_ptr<HybridH3> model_ = MakeTestModel(*cpu_, TinyConfig());
  std::vector<int64_t> bytes_ = std::vector<int64_t>(40);
};

TEST(CutWindowsTest, AreThoseOfPerplexity) {
  const Ids ids = {0, 1, 2, 3, 4, 5, 6};
  const auto windows = CutWindows(ids, 3);
  ASSERT_EQ(windows.size(), 2);
  EXPECT_THAT(windows[0], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(windows[1], ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(CutWindows(IdSpan(ids).first(6), 3).size(), 1);
  EXPECT_EQ(CutWindows(IdSpan(ids).first(3), 3).size(), 0);
  EXPECT_EQ(CutWindows({}, 3).size(), 0);
}

TEST_F(PerplexityByLengthTest, PositionsTogetherAreThePerplexity) {
  const Ids ids = RandomIds(1450, 40, 1);
  const auto found = Evaluate(ids, 700, 100);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->windows, 2);
  std::vector<int64_t> ends;
  double sum = 0;
  int64_t tokens = 0, bytes = 0;
  for (const PositionBucket& bucket : found->by_position) {
    ends.push_back(bucket.last);
    tokens += bucket.score.tokens;
    bytes += bucket.score.bytes;
    sum += bucket.score.nll * static_cast<double>(bucket.score.tokens);
    EXPECT_GT(bucket.tokens_per_second, 0);
  }
  EXPECT_THAT(ends, ElementsAre(64, 128, 256, 512, 700));
  const Perplexity expected = EvaluatePerplexity(*cpu_, *model_, ids, 700).value();
  EXPECT_EQ(tokens, expected.tokens);
  EXPECT_NEAR(sum / static_cast<double>(tokens), expected.nll, kTolerance);
  EXPECT_EQ(bytes, std::accumulate(ids.begin() + 1, ids.begin() + 1401, int64_t{1400}));
}

TEST_F(PerplexityByLengthTest, OfAModelWithoutAttention) {
  H3Config config = TinyConfig();
  config.attention_layers.clear();
  const auto recurrent = MakeTestModel(*cpu_, config);
  const Ids ids = RandomIds(601, 40, 8);
  const auto found = EvaluateByLength(*cpu_, *recurrent, CutWindows(ids, 600), bytes_,
                                      {.window = {.length = 600}, .last_tokens = 600 - 64});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_NEAR(found->by_position[0].score.nll,
              EvaluatePerplexity(*cpu_, *recurrent, IdSpan(ids).first(65), 64)->nll, kTolerance);
  EXPECT_NEAR(found->by_context[0].score.nll,
              EvaluatePerplexity(*cpu_, *recurrent, IdSpan(ids).subspan(64), 600 - 64)->nll,
              kTolerance);
  EXPECT_EQ(found->by_position.back().state_bytes, found->by_position[0].state_bytes);
}

TEST_F(PerplexityByLengthTest, ABucketIsOfItsPositions) {
  const Ids ids = RandomIds(201, 40, 2);
  const auto found = Evaluate(ids, 200, 10);
  ASSERT_TRUE(found.ok()) << found.status();
  for (const PositionBucket& bucket : found->by_position) {
    EXPECT_EQ(bucket.score.tokens, bucket.last - bucket.first + 1);
    EXPECT_NEAR(bucket.score.nll, Direct(IdSpan(ids).first(bucket.last + 1), bucket.first - 1),
                kTolerance);
  }
}

TEST_F(PerplexityByLengthTest, ContextsAreOfTheSameTokens) {
  const Ids ids = RandomIds(601, 40, 3);
  const auto found = Evaluate(ids, 300, 50);
  ASSERT_TRUE(found.ok()) << found.status();
  std::vector<int64_t> contexts;
  for (const ContextScore& score : found->by_context) {
    contexts.push_back(score.context);
    EXPECT_EQ(score.score.tokens, 100);
    EXPECT_EQ(score.score.bytes, found->by_context[0].score.bytes);
    double direct = 0;
    for (const int64_t end : {300, 600}) {
      const IdSpan read = IdSpan(ids).subspan(end - 50 - score.context, score.context + 51);
      direct += Direct(read, score.context) / 2;
    }
    EXPECT_NEAR(score.score.nll, direct, kTolerance) << score.context;
  }
  EXPECT_THAT(contexts, ElementsAre(0, 64, 128, 250));
}

TEST_F(PerplexityByLengthTest, ComparesWhatIsLongerThan2K) {
  const auto found = Evaluate(RandomIds(4201, 40, 4), 4200, 100);
  ASSERT_TRUE(found.ok()) << found.status();
  const auto& positions = found->by_position;
  ASSERT_EQ(positions.size(), 8);
  EXPECT_EQ(positions[5].last, kComparedLength);
  EXPECT_FALSE(positions[5].score.ratio);
  EXPECT_NEAR(positions[7].score.ratio.value(),
              positions[7].score.Perplexity() / positions[5].score.Perplexity(), 1e-9);

  const auto& contexts = found->by_context;
  ASSERT_EQ(contexts.size(), 9);
  EXPECT_EQ(contexts[6].context, kComparedLength);
  EXPECT_FALSE(contexts[6].score.ratio);
  EXPECT_EQ(contexts[8].context, 4100);
  const double ratio = contexts[8].score.ratio.value();
  EXPECT_NEAR(ratio, contexts[8].score.Perplexity() / contexts[6].score.Perplexity(), 1e-9);
  EXPECT_LE(contexts[8].score.ratio_interval.value().low, ratio);
  EXPECT_GE(contexts[8].score.ratio_interval.value().high, ratio);
}

TEST_F(PerplexityByLengthTest, ThereIsNoIntervalOfOneBlock) {
  const auto one = Evaluate(RandomIds(201, 40, 5), 200, 10);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_FALSE(one->by_position[0].score.perplexity);
  ASSERT_TRUE(one->by_position[2].score.perplexity);  // 129 to 200
  const auto two = Evaluate(RandomIds(401, 40, 5), 200, 10);
  ASSERT_TRUE(two.ok()) << two.status();
  const PositionBucket& first = two->by_position[0];
  EXPECT_LT(first.score.perplexity.value().low, first.score.Perplexity());
  EXPECT_GT(first.score.perplexity.value().high, first.score.Perplexity());
}

TEST_F(PerplexityByLengthTest, CountsWhatWasRead) {
  std::vector<int64_t> done;
  const Ids ids = RandomIds(301, 40, 6);
  const auto windows = CutWindows(ids, 150);
  ASSERT_TRUE(EvaluateByLength(*cpu_, *model_, windows, bytes_,
                               {.window = {.length = 150}, .last_tokens = 50},
                               [&](int64_t now, int64_t all) {
                                 done.push_back(now);
                                 EXPECT_EQ(all, 2 * (50 + 114 + 150));
                               })
                  .ok());
  EXPECT_THAT(done, ElementsAre(50, 164, 314, 364, 478, 628));
}

TEST_F(PerplexityByLengthTest, SaysWhatItCannotEvaluate) {
  const Ids ids = RandomIds(201, 40, 7);
  EXPECT_THAT(Evaluate(IdSpan(ids).first(100), 100, 10).status().message(),
              HasSubstr("there are no windows"));
  for (const int64_t last : {0, 200}) {
    EXPECT_THAT(Evaluate(ids, 200, last).status().message(),
                HasSubstr("expected at least 1 and less than the window's 200"));
  }
}

}  // namespace
}  // namespace hippodrome::perplexity_by_length_test
