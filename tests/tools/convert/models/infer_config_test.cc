#include "tools/convert/models/infer_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "engine/initialization/initial_weights.h"
#include "tools/convert/models/h3_presets.h"
#include "tools/convert/models/h3_shapes.h"

namespace hippodrome::infer_config_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A model in which every size differs.
H3Config Small() {
  H3Config config;
  config.d_model = 24;
  config.n_layer = 3;
  config.d_inner = 40;
  config.vocab_size = 50;
  config.padded_vocab_size = 56;
  config.d_state = 10;
  config.head_dim = 4;
  config.n_ssm = 2;
  config.attention_layers = {1};
  config.attention_heads = 3;
  config.rotary_dim = 4;
  config.max_position_embeddings = 70;
  return config;
}

ShapeMap Shapes(const H3Config& config) {
  ShapeMap shapes;
  for (const TensorSpec& spec : H3TensorSpecs(config, DType::kF32)) shapes[spec.name] = spec.shape;
  return shapes;
}

std::string DecideError(const ShapeMap& shapes, const ConfigHints& hints) {
  const auto config = DecideConfig(shapes, hints);
  return config.ok() ? "OK" : Message(config.status());
}

// What train saves is in the order of these.
TEST(H3ShapesTest, ANewModelHasAllOfThemAndNoOthers) {
  ShapeMap shapes;
  const auto initial = InitialWeights(Small(), {}).value();
  for (const InitialParameter& parameter : initial) {
    shapes[parameter.name] = parameter.shape;
  }
  EXPECT_EQ(Shapes(Small()), shapes);
}

TEST(InferConfigTest, ShapesTellEverythingButTheHeads) {
  const auto config = InferConfig(Shapes(Small()));
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->d_model, 24);
  EXPECT_EQ(config->n_layer, 3);
  EXPECT_EQ(config->d_inner, 40);
  EXPECT_EQ(config->padded_vocab_size, 56);
  EXPECT_EQ(config->vocab_size, 56);
  EXPECT_EQ(config->d_state, 10);
  EXPECT_EQ(config->head_dim, 4);
  EXPECT_EQ(config->n_ssm, 2);
  EXPECT_THAT(config->attention_layers, ElementsAre(1));
  EXPECT_EQ(config->rotary_dim, 4);
  EXPECT_EQ(config->max_position_embeddings, 70);
}

TEST(InferConfigTest, PublishedVocabularyIsKnown) {
  H3Config config = Small();
  config.padded_vocab_size = 50264;
  EXPECT_EQ(InferConfig(Shapes(config))->vocab_size, 50257);
}

TEST(InferConfigTest, EveryPresetFitsItsOwnShapes) {
  for (const std::string name : {"h3-125m", "h3-355m", "h3-1.3b", "h3-2.7b", "h3-2.7b-3attn"}) {
    const H3Config preset = H3Preset(name).value();
    const auto config = DecideConfig(Shapes(preset), {.preset = name});
    ASSERT_TRUE(config.ok()) << name << ": " << Message(config.status());
    EXPECT_EQ(config->vocab_size, 50257);
    EXPECT_EQ(config->eos_token_id, 50256);
    EXPECT_EQ(config->attention_layers, preset.attention_layers);
    EXPECT_EQ(config->attention_heads, preset.attention_heads);
    EXPECT_TRUE(CheckShapes(Shapes(preset), *config).ok());
  }
}

TEST(InferConfigTest, PresetsHaveThePublishedSizes) {
  const std::map<std::string, std::pair<size_t, int64_t>> published = {
      {"h3-125m", {290, 126387456}},
      {"h3-355m", {577, 361058304}},
      {"h3-1.3b", {577, 1326096384}},
      {"h3-2.7b", {779, 2671134720}},
      {"h3-2.7b-3attn", {764, 2670307840}}};
  for (const auto& [name, expected] : published) {
    int64_t parameters = 0;
    const auto specs = H3TensorSpecs(H3Preset(name).value(), DType::kF32);
    for (const TensorSpec& spec : specs) {
      if (spec.name.ends_with("inv_freq")) continue;  // a constant, not a parameter
      int64_t elements = 1;
      for (const int64_t size : spec.shape) elements *= size;
      parameters += elements;
    }
    EXPECT_EQ(specs.size(), expected.first) << name;  // the head is not listed
    EXPECT_EQ(parameters, expected.second) << name;
  }
}

TEST(InferConfigTest, HeadsMustBeGiven) {
  EXPECT_THAT(
      DecideError(Shapes(Small()), {}),
      testing::AllOf(HasSubstr("--attn-heads"), HasSubstr("--preset"), HasSubstr("--config")));
  const auto config = DecideConfig(Shapes(Small()), {.attention_heads = 3});
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->attention_heads, 3);
  H3Config pure = Small();
  pure.attention_layers.clear();
  EXPECT_EQ(DecideError(Shapes(pure), {}), "OK");
}

TEST(InferConfigTest, PartialConfigsAreCompleted) {
  const auto config = DecideConfig(
      Shapes(Small()),
      {.config_json = R"({"vocab_size": 51, "attn_cfg": {"num_heads": 3}, "discretization": "zoh",
                          "h3_output_order": "d2_head", "eos_token_id": 7, "ssm_cfg": null})"});
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->vocab_size, 51);
  EXPECT_EQ(config->attention_heads, 3);
  EXPECT_EQ(config->rotary_dim, 4);
  EXPECT_EQ(config->discretization, Discretization::kZoh);
  EXPECT_EQ(config->output_order, H3OutputOrder::kD2Head);
  EXPECT_EQ(config->eos_token_id, 7);
}

TEST(InferConfigTest, ContradictionsAreNamed) {
  const ShapeMap shapes = Shapes(Small());
  const auto error = [&](const std::string& json) {
    return DecideError(shapes, {.config_json = json, .attention_heads = 3});
  };
  EXPECT_THAT(error(R"({"n_layer": 4})"), HasSubstr("n_layer is 4; the tensors say 3"));
  EXPECT_THAT(error(R"({"attn_layer_idx": [2]})"),
              HasSubstr("attn_layer_idx is [2]; the tensors say [1]"));
  EXPECT_THAT(error(R"({"attn_cfg": {"num_heads": 3, "rotary_emb_dim": 0}})"),
              HasSubstr("rotary_emb_dim is 0; the tensors say 4"));
  EXPECT_THAT(error(R"({"ssm_cfg": {"head_dim": 1}})"), HasSubstr("head_dim"));
  EXPECT_THAT(error(R"({"ssm_cfg": {"d_state": 12}})"), HasSubstr("d_state"));
  EXPECT_THAT(error(R"({"ssm_cfg": {"n_ssm": 6}})"), HasSubstr("n_ssm"));
  EXPECT_THAT(error(R"({"attn_cfg": {"num_heads": 6}})"), HasSubstr("--attn-heads is 3"));
  EXPECT_THAT(error(R"({"vocab_size": 57})"), HasSubstr("vocab_size"));
  EXPECT_THAT(error(R"({"max_position_embeddings": 0})"), HasSubstr("max_position_embeddings"));
  EXPECT_THAT(error("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error(R"({"ssm_cfg": 3})"), HasSubstr("ssm_cfg is not an object"));
  EXPECT_THAT(DecideError(shapes, {.preset = "h3-125m"}), HasSubstr("d_model"));
}

TEST(InferConfigTest, BadShapesAreNamed) {
  const H3Config small = Small();
  const auto error = [&](const std::string& name, const std::vector<int64_t>& shape) {
    ShapeMap shapes = Shapes(small);
    shapes[name] = shape;
    const auto config = DecideConfig(shapes, {.attention_heads = 3});
    const absl::Status status = config.ok() ? CheckShapes(shapes, *config) : config.status();
    return Message(status);
  };
  EXPECT_THAT(
      error("backbone.layers.2.mlp.fc1.weight", {40, 25}),
      HasSubstr("'backbone.layers.2.mlp.fc1.weight' has shape [40, 25]; expected [40, 24]"));
  EXPECT_THAT(error("backbone.layers.0.mixer.D", {5}), HasSubstr("a divisor of d_model 24"));
  EXPECT_THAT(error("backbone.layers.0.mixer.D", {0}), HasSubstr("dimensions of 1 to"));
  EXPECT_THAT(error("backbone.layers.0.mixer.kernel.kernel.inv_A_real", {6}),
              HasSubstr("2 dimensions"));
  EXPECT_THAT(error(kWordEmbeddings, {int64_t{1} << 40, 24}), HasSubstr("has shape"));
  EXPECT_THAT(error(kHead, {56, 25}), HasSubstr("not tied are not supported"));
  EXPECT_THAT(error("backbone.extra", {1}), HasSubstr("'backbone.extra' of shape [1] is not part"));
  EXPECT_THAT(error("backbone.layers.9.norm1.weight", {24}), HasSubstr("layer 3 has neither"));
}

TEST(InferConfigTest, MissingTensorsAreNamed) {
  for (const TensorSpec& spec : H3TensorSpecs(Small(), DType::kF32)) {
    if (spec.name == kPositionEmbeddings || spec.name.ends_with("inv_freq")) continue;
    ShapeMap shapes = Shapes(Small());
    shapes.erase(spec.name);
    const auto config = DecideConfig(shapes, {.attention_heads = 3});
    const absl::Status status = config.ok() ? CheckShapes(shapes, *config) : config.status();
    EXPECT_FALSE(status.ok()) << spec.name;
  }
}

}  // namespace
}  // namespace hippodrome::infer_config_test
