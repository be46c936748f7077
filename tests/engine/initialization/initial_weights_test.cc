#include "engine/initialization/initial_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "engine/models/bigs/bigs.h"
#include "engine/models/h3/hybrid_h3.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/initial_model.h"
#include "tests/testing/random_model.h"

namespace hippodrome::initial_weights_test {
namespace {

using Parameters = std::vector<InitialParameter>;

Parameters Initial(const H3Config& config, const InitializationOptions& options = {}) {
  auto parameters = InitialWeights(config, options);
  EXPECT_TRUE(parameters.ok()) << parameters.status();
  return *std::move(parameters);
}

const InitialParameter& Find(const Parameters& parameters, const std::string& name) {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const InitialParameter& p) { return p.name == name; });
  EXPECT_NE(found, parameters.end()) << name;
  return *found;
}

const std::vector<float>& Values(const Parameters& parameters, const std::string& name) {
  return Find(parameters, name).values;
}

// Mean 0 and this deviation. n normal values have a mean of deviation sqrt(1 / n) and a deviation
// known to sqrt(1 / (2 n)) of itself; five of these are allowed.
void ExpectNormal(const Parameters& parameters, const std::string& name, double deviation) {
  const std::vector<float>& values = Values(parameters, name);
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (const float x : values) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  EXPECT_NEAR(sum / n, 0, 5 * deviation / std::sqrt(n)) << name;
  EXPECT_NEAR(std::sqrt(squares / n), deviation, 5 * deviation / std::sqrt(2 * n)) << name;
}

void ExpectConstant(const Parameters& parameters, const std::string& name, float value) {
  const std::vector<float>& values = Values(parameters, name);
  EXPECT_EQ(values, std::vector<float>(values.size(), value)) << name;
}

// Values within the bounds that nearly reach them.
void ExpectUniform(const Parameters& parameters, const std::string& name, double low, double high) {
  const std::vector<float>& values = Values(parameters, name);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  // All of n values miss the outer tenth with probability 0.9^n.
  const double margin = 0.1 * (high - low);
  EXPECT_GE(*least, static_cast<float>(low)) << name;
  EXPECT_LE(*most, static_cast<float>(high)) << name;
  if (values.size() < 200) return;
  EXPECT_LE(*least, low + margin) << name;
  EXPECT_GE(*most, high - margin) << name;
}

bool NamesDiffer(const Parameters& parameters) {
  std::set<std::string> names;
  for (const InitialParameter& p : parameters) names.insert(p.name);
  return names.size() == parameters.size();
}

void ExpectLoads(const H3Config& config) {
  const Parameters parameters = Initial(config);
  InitialSource source(parameters);
  const auto backend = MakeReferenceBackend();
  const auto model = HybridH3::Load(*backend, config, source, DType::kF32);
  EXPECT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(source.Unread(), testing::IsEmpty());
  EXPECT_TRUE(NamesDiffer(parameters));
}

void ExpectLoads(const BigsConfig& config) {
  const Parameters parameters = InitialWeights(config, {});
  InitialSource source(parameters);
  const auto backend = MakeReferenceBackend();
  const auto model = Bigs::Load(*backend, config, source, DType::kF32);
  EXPECT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(source.Unread(), testing::IsEmpty());
  EXPECT_TRUE(NamesDiffer(parameters));
}

template <typename Config>
Config With(Config config, void (*change)(Config&)) {
  change(config);
  return config;
}

TEST(InitialWeightsTest, HasExactlyWhatDecodersLoad) {
  ExpectLoads(TinyConfig());
  ExpectLoads(With<H3Config>(TinyConfig(), [](H3Config& c) { c.rotary_dim = 4; }));
  ExpectLoads(With<H3Config>(TinyConfig(), [](H3Config& c) {
    c.head_dim = 8;
    c.n_ssm = 2;
    c.max_position_embeddings = 7;
  }));
  ExpectLoads(With<H3Config>(TinyConfig(), [](H3Config& c) { c.attention_layers = {0, 1, 2}; }));
}

TEST(InitialWeightsTest, HasExactlyWhatOtherMixersLoad) {
  for (const DecoderMixer mixer : {DecoderMixer::kH3, DecoderMixer::kS4d, DecoderMixer::kS4,
                                   DecoderMixer::kGss, DecoderMixer::kLinearAttention}) {
    ExpectLoads(TinyMixerConfig(mixer));
  }
}

TEST(InitialWeightsTest, HasExactlyWhatEncodersLoad) {
  for (const EncoderHead head :
       {EncoderHead::kNone, EncoderHead::kMaskedLm, EncoderHead::kSequenceClassification,
        EncoderHead::kMultipleChoice, EncoderHead::kTokenClassification,
        EncoderHead::kQuestionAnswering}) {
    BigsConfig config = TinyBigsConfig();
    config.head = head;
    ExpectLoads(config);
  }
  for (const EncoderBlock block : {EncoderBlock::kGated, EncoderBlock::kStack}) {
    for (const EncoderRouting routing : {EncoderRouting::kSsm, EncoderRouting::kAttention}) {
      BigsConfig config = TinyBigsConfig();
      config.block = block;
      config.routing = routing;
      config.num_attention_heads = 4;
      config.num_ssm_heads = 2;
      config.tie_word_embeddings = false;
      config.position_table = false;
      ExpectLoads(config);
    }
  }
}

TEST(InitialWeightsTest, FollowsThePublishedH3) {
  const H3Config config = With<H3Config>(TinyConfig(), [](H3Config& c) { c.rotary_dim = 4; });
  const Parameters p = Initial(config);
  const std::string h3 = "backbone.layers.0.mixer.", attention = "backbone.layers.1.mixer.";
  const std::string mlp = "backbone.layers.2.mlp.";
  ExpectNormal(p, "backbone.embeddings.word_embeddings.weight", 0.02);
  ExpectConstant(p, "backbone.layers.0.norm1.weight", 1);
  ExpectConstant(p, "backbone.ln_f.bias", 0);
  ExpectNormal(p, h3 + "q_proj.weight", 0.02);
  ExpectNormal(p, h3 + "output_linear.weight", 0.02);
  ExpectConstant(p, h3 + "output_linear.bias", 0);
  ExpectNormal(p, h3 + "D", 1);
  ExpectNormal(p, h3 + "ssm_k_D", 1);
  ExpectUniform(p, h3 + "ssm_k_kernel.kernel.C", -1 / std::sqrt(8), 1 / std::sqrt(8));
  ExpectUniform(p, h3 + "kernel.kernel.log_dt", std::log(0.001), std::log(0.1));
  ExpectConstant(p, h3 + "kernel.kernel.inv_A_real", std::log(0.5f));
  ExpectNormal(p, h3 + "kernel.kernel.C", std::sqrt(0.5));
  const auto& shift_b = Values(p, h3 + "ssm_k_kernel.kernel.B");
  for (size_t i = 0; i < shift_b.size(); ++i) EXPECT_EQ(shift_b[i], i % 8 == 0 ? 1 : 0);
  const auto& b = Values(p, h3 + "kernel.kernel.B");
  for (size_t i = 0; i < b.size(); ++i) EXPECT_EQ(b[i], i % 2 == 0 ? 1 : 0);
  const auto& a_imag = Values(p, h3 + "kernel.kernel.A_imag");
  for (size_t i = 0; i < a_imag.size(); ++i) {
    EXPECT_FLOAT_EQ(a_imag[i], static_cast<float>(std::numbers::pi * (i % 4)));
  }
  ExpectNormal(p, attention + "Wqkv.weight", 0.02);
  ExpectNormal(p, attention + "out_proj.weight", 0.02 / std::sqrt(6));
  ExpectNormal(p, mlp + "fc1.weight", 0.02);
  ExpectNormal(p, mlp + "fc2.weight", 0.02 / std::sqrt(6));
  const InitialParameter& inv_freq = Find(p, attention + "rotary_emb.inv_freq");
  EXPECT_FALSE(inv_freq.trained);
  EXPECT_EQ(inv_freq.values, (std::vector<float>{1, 0.01f}));
}

TEST(InitialWeightsTest, FollowsThePublishedS4d) {
  H3Config config = TinyMixerConfig(DecoderMixer::kS4d);
  config.d_model = 64;
  const Parameters p = Initial(config);
  const std::string mixer = "backbone.layers.0.mixer.", kernel = mixer + "kernel.kernel.";
  ExpectNormal(p, mixer + "D", 1);
  ExpectNormal(p, mixer + "output_linear.weight", 0.02);
  ExpectUniform(p, kernel + "log_dt", std::log(0.001), std::log(0.1));
  ExpectConstant(p, kernel + "log_w_real", std::log(0.5f + 1e-4f));
  const auto& imaginary = Values(p, kernel + "w_imag");
  ASSERT_EQ(imaginary.size(), 4u);
  EXPECT_FLOAT_EQ(imaginary[1], static_cast<float>(8 / std::numbers::pi * (8.0 / 3 - 1)));
  // E |C B|^2 = |B|^2: the power of what white noise leaves in a state, 2 sum |C B / A|^2, is that
  // of E |C|^2 = 1 on average over channels. |C|^2 has deviation 1, of a mean over 64 channels 1/8.
  const auto& c = Values(p, kernel + "C");
  double power = 0;
  for (size_t i = 0; i < c.size(); i += 2) {
    const double w = imaginary[i / 2 % 4];
    power += 2 * (c[i] * c[i] + c[i + 1] * c[i + 1]) / (0.25 + w * w) / 64;
  }
  EXPECT_NEAR(power, 1, 5.0 / 8);
}

TEST(InitialWeightsTest, FollowsThePublishedS4) {
  const H3Config config = TinyMixerConfig(DecoderMixer::kS4);
  const Parameters p = Initial(config);
  const std::string mixer = "backbone.layers.0.mixer.", kernel = mixer + "layer.kernel.";
  ExpectNormal(p, mixer + "layer.D", 1);
  ExpectNormal(p, mixer + "output_linear.0.weight", 0.02 / std::sqrt(6));
  ExpectNormal(p, kernel + "C", std::sqrt(0.5));
  ExpectConstant(p, kernel + "A_real", std::log(0.5f));
  // Invariants of V*: |V* p|^2 = |p|^2 = sum (n + 1/2) over pairs, Im Lambda > 0 as stored.
  const auto& stored_p = Values(p, kernel + "P");
  double norm = 0;
  for (size_t i = 0; i < 8; ++i) norm += 2 * stored_p[i] * stored_p[i];
  EXPECT_NEAR(norm, 32, 1e-4);
  for (const float w : Values(p, kernel + "A_imag")) EXPECT_GT(w, 0);
  for (const float b : Values(p, kernel + "B")) EXPECT_TRUE(std::isfinite(b));
}

TEST(InitialWeightsTest, FollowsThePublishedGss) {
  const Parameters p = Initial(TinyMixerConfig(DecoderMixer::kGss));
  const std::string mixer = "backbone.layers.2.mixer.";
  for (const char* name : {"Lambda_real", "Lambda_imag", "C", "param_D"}) {
    ExpectNormal(p, mixer + "dss." + name, 1);
  }
  ExpectConstant(p, mixer + "dss.norm.weight", 1);
  for (const char* name : {"to_u.0", "to_v.0", "to_gate", "to_out"}) {
    ExpectNormal(p, mixer + name + ".weight", 0.02);
  }
  ExpectConstant(p, mixer + "to_out.bias", 0);
}

TEST(InitialWeightsTest, LinearAttentionStartsAsAttentionDoes) {
  const Parameters p = Initial(TinyMixerConfig(DecoderMixer::kLinearAttention));
  for (const char* layer : {"0", "1"}) {
    const std::string mixer = std::string("backbone.layers.") + layer + ".mixer.";
    ExpectNormal(p, mixer + "Wqkv.weight", 0.02);
    ExpectNormal(p, mixer + "out_proj.weight", 0.02 / std::sqrt(6));
    ExpectConstant(p, mixer + "Wqkv.bias", 0);
  }
}

TEST(InitialWeightsTest, MeasuresChooseTheSpectrum) {
  H3Config config = TinyConfig();
  config.n_ssm = 2;
  const std::string name = "backbone.layers.0.mixer.kernel.kernel.A_imag";
  const auto inverse = [](int n) {
    return static_cast<float>(8 / std::numbers::pi * (8.0 / (2 * n + 1) - 1));
  };
  const auto diag = Values(Initial(config, {.measure = Measure::kDiag}), name);
  for (int n = 0; n < 4; ++n) {
    EXPECT_FLOAT_EQ(diag[n], inverse(n));
    EXPECT_FLOAT_EQ(diag[4 + n], static_cast<float>(std::numbers::pi * n));
  }
  const auto inv = Values(Initial(config, {.measure = Measure::kDiagInv}), name);
  EXPECT_FLOAT_EQ(inv[4], inverse(0));
  config.n_ssm = 1;
  EXPECT_EQ(InitialWeights(config, {.measure = Measure::kDiag}).status().message(),
            "ssm_cfg.n_ssm is 1, expected an even number with measure \"diag\", whose halves "
            "differ");
}

TEST(InitialWeightsTest, FollowsThePublishedBigs) {
  BigsConfig config = TinyBigsConfig();
  config.tie_word_embeddings = false;
  const Parameters p = InitialWeights(config, {});
  const std::string layer = "bigs.encoder.layer.1.";
  for (const char* name :
       {"bigs.embeddings.word_embeddings.weight", "bigs.embeddings.position_embeddings.weight",
        "bigs.embeddings.token_type_embeddings.weight"}) {
    ExpectNormal(p, name, 0.02);
  }
  for (const char* name :
       {"dv", "du_forward", "du_backward", "duc_forward", "duc_backward", "dol", "do"}) {
    ExpectNormal(p, layer + name + ".weight", 0.02);
    ExpectConstant(p, layer + name + ".bias", 0);
  }
  ExpectConstant(p, layer + "LayerNorm.weight", 1);
  ExpectConstant(p, layer + "fs4.kernel.A_re", -0.5f);
  ExpectConstant(p, layer + "bs4.D", 1);
  ExpectUniform(p, layer + "bs4.kernel.log_step", std::log(0.01), 0);
  ExpectNormal(p, layer + "fs4.kernel.C", std::sqrt(0.5));
  ExpectNormal(p, "cls.predictions.transform.dense.weight", 1 / std::sqrt(32));
  ExpectNormal(p, "cls.predictions.decoder.weight", 1 / std::sqrt(32));
  const auto& decoder = Values(p, "cls.predictions.decoder.weight");
  const float bound = 2 / 0.87962566f / std::sqrt(32.0f);
  EXPECT_TRUE(std::all_of(decoder.begin(), decoder.end(),
                          [&](float w) { return std::abs(w) <= bound * 1.000001f; }));
}

// The published range at 64 modes, and its symmetry.
TEST(InitialWeightsTest, EncodersStartFromTheSpectrumOfHippo) {
  BigsConfig config = TinyBigsConfig();
  config.num_ssm = 64;
  config.num_ssm_heads = 2;
  const std::string name = "bigs.encoder.layer.0.fs4.kernel.A_im";
  const auto hippo = Values(InitialWeights(config, {}), name);
  ASSERT_EQ(hippo.size(), 128u);
  EXPECT_TRUE(std::is_sorted(hippo.begin(), hippo.begin() + 64));
  EXPECT_NEAR(hippo[63], 1303.27, 0.01);
  for (int n = 0; n < 64; ++n) {
    EXPECT_NEAR(hippo[n], -hippo[63 - n], 1e-3) << n;
    EXPECT_EQ(hippo[64 + n], hippo[n]) << n;
  }
  const auto linear = Values(InitialWeights(config, {.scaling = EncoderScaling::kLin}), name);
  EXPECT_FLOAT_EQ(linear[63], static_cast<float>(63 * std::numbers::pi));
  const auto inverse = Values(InitialWeights(config, {.scaling = EncoderScaling::kInv}), name);
  EXPECT_FLOAT_EQ(inverse[0], static_cast<float>(64 / std::numbers::pi * 63));
}

TEST(InitialWeightsTest, ValuesDependOnSeedAndNameAlone) {
  H3Config longer = TinyConfig();
  longer.n_layer = 5;
  const std::string name = "backbone.layers.2.mixer.q_proj.weight";
  const auto values = Values(Initial(TinyConfig()), name);
  EXPECT_EQ(values, Values(Initial(longer), name));
  EXPECT_NE(values, Values(Initial(TinyConfig(), {.seed = 1}), name));
  EXPECT_NE(values, Values(Initial(TinyConfig()), "backbone.layers.2.mixer.k_proj.weight"));
}

}  // namespace
}  // namespace hippodrome::initial_weights_test
