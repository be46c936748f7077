#include "tools/train/step/step_limits.h"

#include <gtest/gtest.h>

namespace hippodrome::step_limits_test {
namespace {

H3Config Decoder() {
  H3Config config;
  config.d_model = 256;
  config.n_layer = 6;
  config.d_inner = 1024;
  config.vocab_size = config.padded_vocab_size = 4000;
  return config;
}

TEST(StepLimitsTest, ADecoderMultipliesSixTimesItsWeightsPerToken) {
  const StepSize size = {.sequences = 16, .length = 256, .answers = 16 * 256};
  const double weights = 6.0 * 256 * (4 * 256 + 2 * 1024) + 4000.0 * 256;
  EXPECT_DOUBLE_EQ(TrainingStepCost(Decoder(), size).flops, 6 * weights * 16 * 256);
}

TEST(StepLimitsTest, EachMixerHasItsOwnMatrices) {
  H3Config config = Decoder();
  const StepSize size = {.sequences = 1, .length = 1, .answers = 1};
  const double without = 6.0 * 256 * 2 * 1024 + 4000.0 * 256;
  const auto mixers = [&] { return TrainingStepCost(config, size).flops / 6 - without; };
  config.mixer = DecoderMixer::kS4d;
  EXPECT_DOUBLE_EQ(mixers(), 6.0 * 256 * 256);
  config.mixer = DecoderMixer::kS4;
  EXPECT_DOUBLE_EQ(mixers(), 6.0 * 2 * 256 * 256);
  config.mixer = DecoderMixer::kLinearAttention;
  EXPECT_DOUBLE_EQ(mixers(), 6.0 * 4 * 256 * 256);
  config.mixer = DecoderMixer::kGss;
  config.gss_channels = 64;
  // To the gate, from the SSM's channels to it, to those channels, and from the gate.
  EXPECT_DOUBLE_EQ(mixers(), 6.0 * (256 * 1024 + 64 * 1024 + 256 * 64 + 1024 * 256));
}

TEST(StepLimitsTest, AttentionAddsItsProducts) {
  H3Config config = Decoder();
  const StepSize size = {.sequences = 2, .length = 128, .answers = 256};
  const double without = TrainingStepCost(config, size).flops;
  config.attention_layers = {3};
  config.attention_heads = 4;
  // Causal: half of two products of L x L x d, at two operations each.
  EXPECT_DOUBLE_EQ(TrainingStepCost(config, size).flops - without, 3.0 * 2 * 2 * 128 * 128 * 256);
}

TEST(StepLimitsTest, AnEncodersHeadRunsOnTheAnswersOnly) {
  BigsConfig config;
  config.vocab_size = 1000;
  config.hidden_size = 64;
  config.intermediate_size = 192;
  config.num_hidden_layers = 2;
  config.head = EncoderHead::kMaskedLm;
  const StepSize size = {.sequences = 4, .length = 128, .answers = 4 * 19};
  const double layers = 2.0 * 13 * 64 * 64 * 4 * 128;
  const double head = (64.0 * 64 + 1000 * 64) * 4 * 19;
  EXPECT_DOUBLE_EQ(TrainingStepCost(config, size).flops, 6 * (layers + head));
}

TEST(StepLimitsTest, TheLimitIsThatOfArithmeticOrOfMemory) {
  const StepSize size = {.sequences = 2, .length = 50, .parameters = 1000};
  const Cost cost = {.flops = 1e9, .bytes = 28000};
  const Ceilings ceilings = {
      .threads = 1, .read_bytes = 1e9, .f32_flops = 1e10, .bf16_flops = 4e10};
  EXPECT_DOUBLE_EQ(MostTokensPerSecond(cost, size, DType::kF32, ceilings), 100 / 0.1);
  EXPECT_DOUBLE_EQ(MostTokensPerSecond(cost, size, DType::kBF16, ceilings), 100 / 0.025);
  const Ceilings slow_memory = {.read_bytes = 28000, .f32_flops = 1e10, .bf16_flops = 1e10};
  EXPECT_DOUBLE_EQ(MostTokensPerSecond(cost, size, DType::kF32, slow_memory), 100);
  EXPECT_DOUBLE_EQ(TrainingStepCost(Decoder(), size).bytes, 28 * 1000);
}

}  // namespace
}  // namespace hippodrome::step_limits_test
