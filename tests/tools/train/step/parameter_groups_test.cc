#include "tools/train/step/parameter_groups.h"

#include <gtest/gtest.h>

#include <string>

namespace hippodrome::parameter_groups_test {
namespace {

constexpr ModelFamily kDecoder = ModelFamily::kH3;
constexpr ModelFamily kEncoder = ModelFamily::kBigs;

TEST(ParameterGroupsTest, DecodersHaveTheGroupsOfThePublishedTraining) {
  const OptimizerOptions options = {.rate = 6e-4, .weight_decay = 0.1};
  const std::string mixer = "backbone.layers.3.mixer.";
  for (const char* name : {"kernel.kernel.log_dt", "kernel.kernel.inv_A_real",
                           "kernel.kernel.A_imag", "kernel.kernel.B", "ssm_k_kernel.kernel.B"}) {
    const ParameterGroup group = GroupOf(options, kDecoder, mixer + name);
    EXPECT_TRUE(group.ssm) << name;
    EXPECT_FALSE(group.decays) << name;
  }
  for (const char* name :
       {"mixer.kernel.kernel.C", "mixer.ssm_k_kernel.kernel.C", "mixer.D", "mixer.ssm_k_D",
        "mixer.q_proj.weight", "mixer.q_proj.bias", "norm1.weight", "norm2.bias"}) {
    const ParameterGroup group =
        GroupOf(options, kDecoder, std::string("backbone.layers.0.") + name);
    EXPECT_FALSE(group.ssm) << name;
    EXPECT_TRUE(group.decays) << name;
  }
}

TEST(ParameterGroupsTest, EncodersSpareBiasesAndNormsOnly) {
  const OptimizerOptions options = {.rate = 6e-4, .weight_decay = 0.05};
  const std::string layer = "bigs.encoder.layer.0.";
  for (const char* name : {"fs4.kernel.A_re", "bs4.kernel.A_im", "fs4.kernel.C", "fs4.D",
                           "fs4.kernel.log_step", "dv.weight"}) {
    const ParameterGroup group = GroupOf(options, kEncoder, layer + name);
    EXPECT_FALSE(group.ssm) << name;
    EXPECT_TRUE(group.decays) << name;
  }
  EXPECT_TRUE(GroupOf(options, kEncoder, "bigs.embeddings.position_embeddings.weight").decays);
  for (const char* name : {"dv.bias", "LayerNorm.weight", "LayerNorm.bias", "mlp_norm.weight"}) {
    EXPECT_FALSE(GroupOf(options, kEncoder, layer + name).decays) << name;
  }
  EXPECT_FALSE(GroupOf(options, kEncoder, "cls.predictions.bias").decays);
}

TEST(ParameterGroupsTest, OptionsGoBeforeWhatWasPublished) {
  OptimizerOptions options = {.rate = 6e-4, .ssm_rate = 1e-5, .ssm_decay = true};
  options.no_decay = NoDecay{.norms = true};
  EXPECT_TRUE(GroupOf(options, kEncoder, "bigs.encoder.layer.0.fs4.kernel.A_re").ssm);
  EXPECT_TRUE(GroupOf(options, kEncoder, "bigs.encoder.layer.0.fs4.kernel.A_re").decays);
  EXPECT_TRUE(GroupOf(options, kEncoder, "bigs.encoder.layer.0.dv.bias").decays);
  EXPECT_FALSE(GroupOf(options, kDecoder, "backbone.ln_f.weight").decays);
  EXPECT_FALSE(GroupOf(options, kDecoder, "backbone.layers.0.norm1.weight").decays);
  options.no_decay = NoDecay{.biases = true};
  EXPECT_FALSE(GroupOf(options, kDecoder, "backbone.layers.0.mlp.fc1.bias").decays);
  EXPECT_TRUE(GroupOf(options, kDecoder, "backbone.layers.0.norm1.weight").decays);
}

TEST(ParameterGroupsTest, TheRateOfTheSsmGroupIsBounded) {
  EXPECT_EQ(SsmRate({.rate = 5e-4}), 5e-4);
  EXPECT_EQ(SsmRate({.rate = 5e-3}), 1e-3);
  EXPECT_EQ(SsmRate({.rate = 5e-4, .ssm_rate = 2e-3}), 2e-3);
  EXPECT_EQ(SsmRate({.rate = 5e-4, .ssm_rate = 0}), 0);
}

}  // namespace
}  // namespace hippodrome::parameter_groups_test
