#include "tools/limits/model_cost.h"

#include <gtest/gtest.h>

#include "tools/convert/models/h3_presets.h"

namespace hippodrome::model_cost_test {
namespace {

// The published 125M shape.
H3Config Small() { return H3Preset("h3-125m").value(); }

TEST(ModelCostTest, PrefillCountsTheMatricesOnceForEachTokenAndTheHeadOnce) {
  const Cost cost = PrefillCost(Small(), 1, 512, DType::kBF16);
  const double matrices = 12.0 * 12 * 768 * 768;  // 12 d^2 per layer
  const double head = 50264.0 * 768;
  EXPECT_DOUBLE_EQ(cost.flops, 2 * matrices * 512 + 2 * head + 2.0 * 512 * 512 * 768);
  EXPECT_DOUBLE_EQ(cost.bytes, 2 * (matrices + head));
}

TEST(ModelCostTest, AnInt8WeightIsAByteAndItsShareOfAScale) {
  const double bf16 = PrefillCost(Small(), 1, 512, DType::kBF16).bytes;
  EXPECT_DOUBLE_EQ(PrefillCost(Small(), 1, 512, DType::kI8).bytes, bf16 / 2 * (1 + 2.0 / 128));
  const Ceilings ceilings = {.read_bytes = 1e30, .f32_flops = 1, .bf16_flops = 2, .int8_flops = 4};
  EXPECT_EQ(LeastSeconds({.flops = 8}, DType::kI8, ceilings), 2);
  EXPECT_EQ(LeastSeconds({.flops = 8}, DType::kBF16, ceilings), 4);
  EXPECT_EQ(LeastSeconds({.flops = 8}, DType::kF32, ceilings), 8);
}

TEST(ModelCostTest, AnInt4WeightIsHalfAByteAndItsShareOfAScaleAndTheHeadHasInt8Ones) {
  const double matrices = 12.0 * 12 * 768 * 768 * (0.5 + 2.0 / 32);
  const double head = 50264.0 * 768 * (1 + 2.0 / 128);
  EXPECT_DOUBLE_EQ(PrefillCost(Small(), 1, 512, DType::kI4).bytes, matrices + head);
  EXPECT_EQ(LeastSeconds({.flops = 8}, DType::kI4, {.read_bytes = 1e30, .int8_flops = 4}), 2);
}

TEST(ModelCostTest, DecodeReadsWeightsOnceAndStatesForEachSequence) {
  const int64_t state = 11 * 768 * 512;
  const Cost one = DecodeCost(Small(), 1, 512, DType::kF32, state);
  const Cost many = DecodeCost(Small(), 9, 512, DType::kF32, state);
  // 2 d f32 for each cached token of the one attention layer.
  const double per_sequence = 1.0 * state + 512.0 * 2 * 768 * 4;
  EXPECT_DOUBLE_EQ((many.bytes - one.bytes) / 8, per_sequence);
  EXPECT_DOUBLE_EQ(many.flops, 9 * one.flops);
  const double weights = 4 * (12.0 * 12 * 768 * 768 + 50264.0 * 768);
  EXPECT_GT(one.bytes, weights + per_sequence);
  EXPECT_LT(one.bytes, 1.05 * weights + per_sequence);
}

// The tables of what an H200 could do at best: 4.3 TB/s, 790 TFLOP/s, bf16.
TEST(ModelCostTest, GivesThePublishedLimits) {
  H3Config large = Small();
  large.d_model = 2048;
  large.d_inner = 8192;
  large.n_layer = 24;
  large.attention_layers = {8, 16};
  large.attention_heads = 16;
  const int64_t state = 22 * 2048 * (2 * 256 + 64 * 2);  // modes both ways, the ring once
  const double prefill = PrefillCost(large, 64, 512, DType::kBF16).flops / 790e12;
  EXPECT_NEAR(prefill, 0.100, 0.002);
  const double step = DecodeCost(large, 256, 1024, DType::kBF16, state).bytes / 4.3e12;
  EXPECT_NEAR(256 / step, 73.8e3, 0.05 * 73.8e3);
}

// The published large shape.
BigsConfig LargeEncoder() {
  BigsConfig config;
  config.hidden_size = 1024;
  config.num_hidden_layers = 23;
  config.intermediate_size = 3072;
  return config;
}

TEST(ModelCostTest, AnEncoderReadsItsMatricesOnceAndAnswersForOneToken) {
  const double layers = 23 * 13.0 * 1024 * 1024;  // 13 d^2 per layer
  const double head = (1024.0 + 30522) * 1024;
  const Cost one = EncodeCost(LargeEncoder(), 1, 128, DType::kBF16);
  EXPECT_DOUBLE_EQ(one.flops, 2 * layers * 128 + 2 * head);
  EXPECT_DOUBLE_EQ(one.bytes, 2 * (layers + head));
  const Cost eight = EncodeCost(LargeEncoder(), 8, 128, DType::kF32);
  EXPECT_DOUBLE_EQ(eight.flops, 8 * one.flops);
  EXPECT_DOUBLE_EQ(eight.bytes, 2 * one.bytes);
}

TEST(ModelCostTest, EncodersCostByTheirHeads) {
  BigsConfig config = LargeEncoder();
  config.labels = {"a", "b", "c"};
  config.head = EncoderHead::kNone;
  const double none = EncodeCost(config, 1, 128, DType::kF32).flops;
  const double d = 1024;
  const std::pair<EncoderHead, double> elements[] = {
      {EncoderHead::kSequenceClassification, d * d + 3 * d},
      {EncoderHead::kMultipleChoice, d * d + d},
      {EncoderHead::kTokenClassification, 3 * d},
      {EncoderHead::kQuestionAnswering, 2 * d},
  };
  for (const auto& [head, expected] : elements) {
    config.head = head;
    EXPECT_DOUBLE_EQ(EncodeCost(config, 1, 128, DType::kF32).flops - none, 2 * expected)
        << Name(head);
  }
}

TEST(ModelCostTest, AttentionBetweenTheTokensOfAnInputCounts) {
  BigsConfig config = LargeEncoder();
  const double ssm = EncodeCost(config, 2, 128, DType::kF32).flops;
  config.routing = EncoderRouting::kAttention;  // as many matrix elements
  config.num_attention_heads = 16;
  EXPECT_DOUBLE_EQ(EncodeCost(config, 2, 128, DType::kF32).flops - ssm,
                   2 * 23 * 4.0 * 128 * 128 * 1024);
}

}  // namespace
}  // namespace hippodrome::model_cost_test
