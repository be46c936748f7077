#include "engine/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::config_test {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// As published: the H3 decoders write such files.
constexpr char kHybrid[] = R"({
 "model_type": "h3", "d_model": 64, "n_layer": 4, "d_inner": 128, "vocab_size": 250,
 "pad_vocab_size_multiple": 16, "ssm_cfg": {"mode": "diag", "measure": "diag-lin", "d_state": 16,
 "head_dim": 8, "n_ssm": 4, "disc": "zoh"}, "attn_layer_idx": [3, 1],
 "attn_cfg": {"num_heads": 4, "rotary_emb_dim": 6}, "max_position_embeddings": 32,
 "layer_norm_epsilon": 1e-6, "residual_in_fp32": false, "tie_word_embeddings": true,
 "activation": "gelu_tanh", "discretization": "zoh", "h3_output_order": "d2_head",
 "eos_token_id": 249, "note": "unknown keys are ignored"})";

constexpr char kSmallest[] = R"({"d_model": 64, "n_layer": 2, "vocab_size": 250})";

TEST(ParseH3Config, ReadsEveryField) {
  const auto config = ParseH3Config(kHybrid);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->d_model, 64);
  EXPECT_EQ(config->n_layer, 4);
  EXPECT_EQ(config->d_inner, 128);
  EXPECT_EQ(config->vocab_size, 250);
  EXPECT_EQ(config->padded_vocab_size, 256);
  EXPECT_EQ(config->d_state, 16);
  EXPECT_EQ(config->head_dim, 8);
  EXPECT_EQ(config->heads(), 8);
  EXPECT_EQ(config->n_ssm, 4);
  EXPECT_EQ(config->discretization, Discretization::kZoh);
  EXPECT_EQ(config->output_order, H3OutputOrder::kD2Head);
  EXPECT_THAT(config->attention_layers, ElementsAre(1, 3));
  EXPECT_TRUE(config->IsAttention(3));
  EXPECT_FALSE(config->IsAttention(2));
  EXPECT_EQ(config->attention_heads, 4);
  EXPECT_EQ(config->rotary_dim, 6);
  EXPECT_EQ(config->max_position_embeddings, 32);
  EXPECT_EQ(config->layer_norm_epsilon, 1e-6);
  EXPECT_EQ(config->eos_token_id, 249);
}

TEST(ParseH3Config, FillsInWhatIsLeftOut) {
  const auto config = ParseH3Config(kSmallest);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->d_inner, 256);
  EXPECT_EQ(config->padded_vocab_size, 256);
  EXPECT_EQ(config->d_state, 64);
  EXPECT_EQ(config->head_dim, 1);
  EXPECT_EQ(config->n_ssm, 64);
  EXPECT_EQ(config->discretization, Discretization::kBilinear);
  EXPECT_EQ(config->output_order, H3OutputOrder::kHeadD2);
  EXPECT_THAT(config->attention_layers, IsEmpty());
  EXPECT_EQ(config->attention_heads, 0);
  EXPECT_EQ(config->max_position_embeddings, 0);
  EXPECT_EQ(config->layer_norm_epsilon, 1e-5);
  EXPECT_EQ(config->eos_token_id, -1);
}

// The members of `changes` put over those of `base`, nested objects member by member.
std::string Changed(const char* base, const std::string& changes) {
  Json json = Json::parse(base);
  const Json patch = Json::parse(changes);
  for (const auto& [key, value] : patch.items()) {
    if (value.is_object() && json[key].is_object()) {
      json[key].update(value);
    } else {
      json[key] = value;
    }
  }
  return json.dump();
}

TEST(ParseH3Config, TakesNullForAbsent) {
  const auto config = ParseH3Config(Changed(
      kHybrid,
      R"({"attn_layer_idx": null, "attn_cfg": null, "eos_token_id": null, "ssm_cfg": null})"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->attention_layers, IsEmpty());
  EXPECT_EQ(config->eos_token_id, -1);
  EXPECT_EQ(config->d_state, 64);
}

TEST(ParseH3Config, TakesTheDiscretizationFromEitherPlace) {
  const auto nested = ParseH3Config(Changed(kSmallest, R"({"ssm_cfg": {"disc": "zoh"}})"));
  ASSERT_TRUE(nested.ok()) << nested.status();
  EXPECT_EQ(nested->discretization, Discretization::kZoh);
  const auto top = ParseH3Config(Changed(kSmallest, R"({"discretization": "zoh"})"));
  ASSERT_TRUE(top.ok()) << top.status();
  EXPECT_EQ(top->discretization, Discretization::kZoh);
}

constexpr char kGss[] = R"({"d_model": 64, "n_layer": 2, "vocab_size": 250, "mixer": "gss",
 "attn_layer_idx": [1], "attn_cfg": {"num_heads": 4}, "ssm_cfg": {"d_state": 32,
 "dss_kernel_H": 12, "dim_expansion_factor": 3}})";

TEST(ParseH3Config, ReadsOtherMixers) {
  const auto gss = ParseH3Config(kGss);
  ASSERT_TRUE(gss.ok()) << gss.status();
  EXPECT_EQ(gss->mixer, DecoderMixer::kGss);
  EXPECT_EQ(gss->d_state, 32);
  EXPECT_EQ(gss->n_ssm, 1);
  EXPECT_EQ(gss->gss_channels, 12);
  EXPECT_EQ(gss->gss_expansion, 3);
  const auto s4 = ParseH3Config(
      Changed(kSmallest, R"({"mixer": "s4", "ssm_cfg": {"mode": "nplr", "l_kernel": 64}})"));
  ASSERT_TRUE(s4.ok()) << s4.status();
  EXPECT_EQ(s4->mixer, DecoderMixer::kS4);
  EXPECT_EQ(s4->c_length, 64);
  EXPECT_EQ(s4->n_ssm, 64);
}

constexpr char kLinearAttention[] = R"({"d_model": 64, "n_layer": 2, "vocab_size": 250,
 "mixer": "linear_attention", "ssm_cfg": {"head_dim": 16}})";

TEST(ParseH3Config, LinearAttentionSaysItsHeads) {
  const auto config = ParseH3Config(kLinearAttention);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->mixer, DecoderMixer::kLinearAttention);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->heads(), 4);
  EXPECT_EQ(config->n_ssm, 0);
  for (const auto& [heads, message] :
       {std::pair{R"({"head_dim": null})", "ssm_cfg.head_dim is missing"},
        std::pair{R"({"head_dim": 24})",
                  "ssm_cfg.head_dim is 24, expected a divisor of d_model 64"},
        std::pair{R"({"head_dim": 128})", "ssm_cfg.head_dim"}}) {
    const auto refused =
        ParseH3Config(Changed(kLinearAttention, std::string(R"({"ssm_cfg": )") + heads + "}"));
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(message));
  }
}

TEST(ParseH3Config, FillsInWhatIsLeftOutOfOtherMixers) {
  const auto s4d = ParseH3Config(Changed(kSmallest, R"({"mixer": "s4d"})"));
  ASSERT_TRUE(s4d.ok()) << s4d.status();
  EXPECT_EQ(s4d->d_state, 64);
  EXPECT_EQ(s4d->n_ssm, 1);
  const auto gss =
      ParseH3Config(Changed(kSmallest, R"({"mixer": "gss", "max_position_embeddings": 33})"));
  ASSERT_TRUE(gss.ok()) << gss.status();
  EXPECT_EQ(gss->d_state, 512);
  EXPECT_EQ(gss->gss_channels, 16);
  EXPECT_EQ(gss->gss_expansion, 4);
}

TEST(ParseH3Config, ReadsItsOwnText) {
  for (const char* text : {kHybrid, kSmallest, kGss, kLinearAttention}) {
    const auto config = ParseH3Config(text);
    ASSERT_TRUE(config.ok());
    const auto again = ParseH3Config(ToJson(*config));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ToJson(*again), ToJson(*config));
    EXPECT_EQ(again->padded_vocab_size, config->padded_vocab_size);
    EXPECT_EQ(again->layer_norm_epsilon, config->layer_norm_epsilon);
    EXPECT_EQ(again->attention_layers, config->attention_layers);
    EXPECT_EQ(again->discretization, config->discretization);
    EXPECT_EQ(again->output_order, config->output_order);
    EXPECT_EQ(again->eos_token_id, config->eos_token_id);
    EXPECT_EQ(again->mixer, config->mixer);
    EXPECT_EQ(again->gss_channels, config->gss_channels);
  }
}

struct BadConfig {
  const char* changes;
  const char* message;
};

TEST(ParseH3Config, NamesTheFieldAtFault) {
  const BadConfig bad[] = {
      {R"({"mixer": "s5"})",
       "mixer is \"s5\", expected \"h3\", \"s4d\", \"s4\", \"gss\" or \"linear_attention\""},
      {R"({"mixer": "s4"})", "ssm_cfg.head_dim is 8, expected an integer in [1, 1]"},
      {R"({"mixer": "gss", "ssm_cfg": {"head_dim": 1}})",
       "ssm_cfg.n_ssm is 4, expected an integer in [1, 1]"},
      {R"({"mixer": "gss", "ssm_cfg": {"head_dim": 1, "n_ssm": 1, "dim_expansion_factor": 65536}})",
       "ssm_cfg.dim_expansion_factor is 65536, expected an integer in [1, 16384]"},
      {R"({"model_type": "BiGS"})", "model_type is \"BiGS\", expected \"h3\""},
      {R"({"d_model": null})", "d_model is missing, expected an integer in [1, 65536]"},
      {R"({"d_model": "64"})", "d_model is \"64\", expected an integer in [1, 65536]"},
      {R"({"d_model": 64.5})", "d_model is 64.5, expected an integer in [1, 65536]"},
      {R"({"d_model": 18446744073709551615})", "d_model is 18446744073709551615, expected"},
      {R"({"d_model": 1e300})", "d_model is 1e+300, expected an integer"},
      {R"({"n_layer": 0})", "n_layer is 0, expected an integer in [1, 1024]"},
      {R"({"n_layer": 4294967297})", "n_layer is 4294967297, expected"},
      {R"({"d_inner": -128})", "d_inner is -128, expected an integer in [1, 1048576]"},
      {R"({"vocab_size": 99999999999})", "vocab_size is 99999999999, expected"},
      {R"({"padded_vocab_size": 249})", "padded_vocab_size is 249, expected an integer in [250,"},
      {R"({"pad_vocab_size_multiple": 0})", "pad_vocab_size_multiple is 0, expected"},
      {R"({"ssm_cfg": {"d_state": -3}})", "ssm_cfg.d_state is -3, expected an even integer in"},
      {R"({"ssm_cfg": {"d_state": 17}})", "ssm_cfg.d_state is 17, expected an even integer in"},
      {R"({"ssm_cfg": {"head_dim": 7}})",
       "ssm_cfg.head_dim is 7, expected a divisor of d_model 64"},
      {R"({"ssm_cfg": {"n_ssm": 9}})", "ssm_cfg.n_ssm is 9, expected an integer in [1, 8]"},
      {R"({"ssm_cfg": {"n_ssm": 3}})", "ssm_cfg.n_ssm is 3, expected a divisor of the number"},
      {R"({"ssm_cfg": {"mode": "nplr"}})", "ssm_cfg.mode is \"nplr\", expected \"diag\""},
      {R"({"ssm_cfg": {"disc": "bilinear"}})", "ssm_cfg.disc is \"bilinear\", expected \"zoh\""},
      {R"({"ssm_cfg": [1]})", "ssm_cfg is [1], expected an object or null"},
      {R"({"ssm_cfg": {"disc": "euler"}, "discretization": null})",
       "ssm_cfg.disc is \"euler\", expected \"bilinear\" or \"zoh\""},
      {R"({"ssm_cfg": {"disc": "euler"}, "discretization": "euler"})",
       "discretization is \"euler\", expected \"bilinear\" or \"zoh\""},
      {R"({"attn_layer_idx": 1})", "attn_layer_idx is 1, expected an array of different layers"},
      {R"({"attn_layer_idx": [1, 1]})", "attn_layer_idx is [1,1], expected an array of different"},
      {R"({"attn_layer_idx": [4]})",
       "attn_layer_idx is [4], expected an array of different layers"},
      {R"({"attn_layer_idx": [-1]})", "attn_layer_idx is [-1], expected an array of different"},
      {R"({"attn_cfg": null})", "attn_cfg.num_heads is missing, expected an integer in [1, 64]"},
      {R"({"attn_cfg": "x"})", "attn_cfg is \"x\", expected an object or null"},
      {R"({"attn_cfg": {"num_heads": 5}})",
       "attn_cfg.num_heads is 5, expected a divisor of d_model"},
      {R"({"attn_cfg": {"rotary_emb_dim": 5}})", "attn_cfg.rotary_emb_dim is 5, expected an even"},
      {R"({"attn_cfg": {"rotary_emb_dim": 18}})", "attn_cfg.rotary_emb_dim is 18, expected"},
      {R"({"max_position_embeddings": -1})", "max_position_embeddings is -1, expected"},
      {R"({"layer_norm_epsilon": 0})", "layer_norm_epsilon is 0, expected a number in (0, 1]"},
      {R"({"layer_norm_epsilon": "1e-5"})", "layer_norm_epsilon is \"1e-5\", expected a number"},
      {R"({"tie_word_embeddings": false})", "tie_word_embeddings is false, expected true"},
      {R"({"tie_word_embeddings": 1})", "tie_word_embeddings is 1, expected true or false"},
      {R"({"activation": "relu"})", "activation is \"relu\", expected \"gelu_tanh\" or"},
      {R"({"activation": 3})", "activation is 3, expected a string"},
      {R"({"h3_output_order": "d3"})", "h3_output_order is \"d3\", expected \"head_d2\" or"},
      {R"({"eos_token_id": 250})", "eos_token_id is 250, expected an integer in [0, 249]"},
      {R"({"eos_token_id": [249]})", "eos_token_id is [249], expected an integer in [0, 249]"},
  };
  for (const BadConfig& config : bad) {
    const auto status = ParseH3Config(Changed(kHybrid, config.changes)).status();
    ASSERT_TRUE(absl::IsInvalidArgument(status)) << config.changes;
    EXPECT_THAT(Message(status), HasSubstr(std::string("config.json: ") + config.message));
  }
}

TEST(ParseH3Config, RefusesWhatIsNoJsonObject) {
  const BadConfig bad[] = {
      {"", "config.json: not JSON"},
      {"{\"d_model\": ", "config.json: not JSON"},
      {"{\"d_model\": NaN}", "config.json: not JSON"},
      {"{\"d_model\": 1e999}", "config.json: not JSON"},
      {"{\"\xff\": 1}", "config.json: not JSON"},
      {"[]", "config.json: expected a JSON object, found array"},
      {"null", "config.json: expected a JSON object, found null"},
  };
  for (const BadConfig& config : bad) {
    const auto status = ParseH3Config(config.changes).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << config.changes;
    EXPECT_THAT(Message(status), HasSubstr(config.message));
  }
}

TEST(ParseH3Config, RefusesDeepNesting) {
  for (const char* bracket : {"[", "{\"a\":"}) {
    std::string deep = "{\"a\":";
    for (int i = 0; i < 100000; ++i) deep += bracket;
    EXPECT_FALSE(ParseH3Config(deep).ok());
  }
  const std::string closed = "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_THAT(Message(ParseH3Config(closed).status()), HasSubstr("nested deeper than 64 levels"));
}

TEST(ReadH3Config, NamesTheFile) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(ReadH3Config(directory.path()).status()));
  directory.Write("config.json", "{}");
  EXPECT_THAT(Message(ReadH3Config(directory.path()).status()),
              HasSubstr(directory.File("config.json") + ": d_model is missing"));
  directory.Write("config.json", kHybrid);
  EXPECT_TRUE(ReadH3Config(directory.path()).ok());
  directory.Write("config.json", std::string(2 << 20, ' '));
  EXPECT_THAT(Message(ReadH3Config(directory.path()).status()), HasSubstr("at most 1048576 bytes"));
}

}  // namespace
}  // namespace hippodrome::config_test
