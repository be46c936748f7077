// What is freed holds nothing for whoever gets it next: all that is free is NaN here.
#include "tests/testing/isolation.h"

#include <gtest/gtest.h>

#include "engine/models/h3/hybrid_h3.h"
#include "tests/testing/random_model.h"
#include "tests/testing/test_backend.h"

namespace hippodrome::isolation_test {
namespace {

// Long enough for each slot and page to be used again many times.
void Check(const H3Config& config, DType weights, IsolationOptions options, uint32_t seed) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto model = MakeTestModel(*backend, config, weights);
  int64_t operations = 1500;
  if (TestBackendIsSlow()) {
    options.tenants = 2;
    options.requests = 2;
    options.longest_prompt = 70;
    options.most_new_tokens = 3;
    // A device's states go on within the error bound, not with the same bits.
    options.tolerance = weights == DType::kBF16 ? 0.05f : 1e-4f;
    operations = 40;
  }
  const IsolationResult result = RunIsolation(*backend, *model, options, operations, seed);
  EXPECT_EQ(result.fault, "");
  const int64_t slots = options.generator.max_sequences;
  EXPECT_GT(result.freed_slots, TestBackendIsSlow() ? slots : 10 * slots);
  EXPECT_GT(result.cancelled, 0);
  EXPECT_GT(result.finished, 0);
  EXPECT_GT(result.tokens, 0);
  if (TestBackendIsSlow()) return;
  EXPECT_GT(result.saved, 0);
  EXPECT_GT(result.followers, 0);
  EXPECT_GT(result.beside, 0);
  EXPECT_GT(result.hits, 0);
  EXPECT_GT(result.evicted, 0);
  EXPECT_EQ(result.accepted > 0, options.generator.speculate);
}

TEST(IsolationTest, HybridModel) { Check(TinyConfig(), DType::kF32, {}, 1); }

TEST(IsolationTest, HybridModelInBF16) { Check(TinyConfig(), DType::kBF16, {}, 2); }

TEST(IsolationTest, HybridModelInFewBits) {
  for (const DType weights : {DType::kI8, DType::kI4}) Check(TinyConfig(), weights, {}, 7);
}

TEST(IsolationTest, H3StatesInBF16) {
  if (TestBackendIsSlow()) GTEST_SKIP() << "devices have no such states";
  IsolationOptions options;
  options.generator.h3_state = DType::kBF16;
  Check(TinyConfig(), DType::kF32, options, 9);
  options = LongPrompts();
  options.generator.h3_state = DType::kBF16;
  options.generator.speculate = true;
  options.most_new_tokens = 60;
  Check(TinyConfig(), DType::kBF16, options, 10);
}

TEST(IsolationTest, WithDrafts) {
  if (TestBackendIsSlow()) GTEST_SKIP() << "devices take no drafts";
  IsolationOptions options{.most_new_tokens = 60};
  options.generator.speculate = true;
  Check(TinyConfig(), DType::kF32, options, 8);
}

TEST(IsolationTest, LongPrompts) { Check(TinyConfig(), DType::kF32, LongPrompts(), 4); }

// Pages that no later token sees go to others at once.
TEST(IsolationTest, WindowOfAttention) {
  IsolationOptions options = LongPrompts();
  options.most_new_tokens = 200;
  options.generator.attention_window = 100;
  Check(TinyConfig(), DType::kF32, options, 6);
}

TEST(IsolationTest, WithoutAttention) {
  H3Config config = TinyConfig();
  config.attention_layers = {};
  config.attention_heads = 0;
  Check(config, DType::kF32, {}, 3);
}

TEST(IsolationTest, OtherMixers) {
  H3Config config = TinyConfig();
  for (const DecoderMixer mixer :
       {DecoderMixer::kS4d, DecoderMixer::kS4, DecoderMixer::kLinearAttention}) {
    config.mixer = mixer;
    config.head_dim = mixer == DecoderMixer::kLinearAttention ? 8 : 1;
    Check(config, DType::kF32, {}, 4);
  }
}

}  // namespace
}  // namespace hippodrome::isolation_test
