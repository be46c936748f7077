#include "engine/passes/forward.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "engine/sampling.h"
#include "kernels/cpu/rows/sample.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::forward_test {
namespace {

// From the logits of every position, on the host.
std::vector<float> FromLogits(Backend& backend, const HybridH3& model,
                              const std::vector<int32_t>& ids) {
  const H3Config& config = model.config();
  std::vector<float> scores = {0};
  const auto sink = [&](int64_t first, std::span<const float> logits) {
    const int64_t rows = std::ssize(logits) / config.padded_vocab_size;
    for (int64_t r = 0; r < rows && first + r + 1 < std::ssize(ids); ++r) {
      const auto row = logits.subspan(r * config.padded_vocab_size, config.vocab_size);
      scores.push_back(static_cast<float>(row[ids[first + r + 1]] - cpu::LogSumExp(row)));
    }
  };
  EXPECT_TRUE(Forward(backend, model, ids, {}, sink).ok());
  return scores;
}

// Lengths around those of chunks.
TEST(ForwardScoresTest, AreThoseOfTheLogits) {
  const auto backend = MakeCpuBackend({.threads = 2});
  const auto model = MakeTestModel(*backend, TinyConfig());
  for (const int64_t length : {1, 2, 255, 256, 257, 600}) {
    const auto ids = RandomIds(length, 40, 3);
    const auto expected = FromLogits(*backend, *model, ids);
    const auto scores = ForwardScores(*backend, *model, ids, 3);
    ASSERT_TRUE(scores.ok()) << scores.status();
    ASSERT_EQ(std::ssize(*scores), length);
    EXPECT_TRUE(scores->front().likeliest.empty());
    for (size_t t = 1; t < scores->size(); ++t) {
      const TokenScores& token = (*scores)[t];
      EXPECT_EQ(std::bit_cast<uint32_t>(token.log_probability),
                std::bit_cast<uint32_t>(expected[t]))
          << "token " << t << " of " << length;
      ASSERT_EQ(token.likeliest.size(), 3);
      EXPECT_GE(token.likeliest[0].log_probability, token.log_probability);
    }
  }
}

TEST(ForwardScoresTest, OfAModelWithPositions) {
  H3Config config = TinyConfig();
  config.max_position_embeddings = 50;
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto model = MakeTestModel(*backend, config);
  EXPECT_TRUE(ForwardScores(*backend, *model, RandomIds(50, 40, 3), 0).ok());
  EXPECT_TRUE(
      absl::IsOutOfRange(ForwardScores(*backend, *model, RandomIds(51, 40, 3), 0).status()));
}

TEST(ForwardScoresTest, RefusesIdsWithoutAnEntryInTheVocabulary) {
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto model = MakeTestModel(*backend, TinyConfig());
  const auto status = [&](const std::vector<int32_t>& ids) {
    return ForwardScores(*backend, *model, ids, 0).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(status({})));
  EXPECT_TRUE(absl::IsInvalidArgument(status({1, 40})));  // a padded row of the embedding
  EXPECT_TRUE(absl::IsInvalidArgument(status({-1})));
  EXPECT_TRUE(status({39}).ok());
}

TEST(ForwardScoresTest, HasNoMoreAlternativesThanTokens) {
  H3Config config = TinyConfig();
  config.vocab_size = 5;
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto model = MakeTestModel(*backend, config);
  const auto scores = ForwardScores(*backend, *model, RandomIds(3, 5, 1), kMaxLikeliest);
  ASSERT_TRUE(scores.ok()) << scores.status();
  ASSERT_EQ((*scores)[2].likeliest.size(), 5);
  double sum = 0;
  for (const LikelyToken& token : (*scores)[2].likeliest) sum += std::exp(token.log_probability);
  EXPECT_NEAR(sum, 1, 1e-6);
}

}  // namespace
}  // namespace hippodrome::forward_test
