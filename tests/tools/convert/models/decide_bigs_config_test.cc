#include "tools/convert/models/decide_bigs_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "engine/initialization/initial_weights.h"
#include "tests/tools/convert/bigs_files.h"
#include "tools/convert/models/bigs_presets.h"
#include "tools/convert/models/bigs_shapes.h"

namespace hippodrome::decide_bigs_config_test {
namespace {

using Activation = Epilogue::Activation;
using testing::AllOf;
using testing::HasSubstr;

ShapeMap Shapes(const BigsConfig& config) {
  ShapeMap shapes;
  for (const TensorSpec& spec : BigsTensorSpecs(config, DType::kF32, {})) {
    shapes[spec.name] = spec.shape;
  }
  return shapes;
}

std::string DecideError(const ShapeMap& shapes, const BigsHints& hints) {
  const auto config = DecideBigsConfig(shapes, hints);
  return config.ok() ? "OK" : Message(config.status());
}

int64_t Parameters(const BigsConfig& config) {
  int64_t parameters = 0;
  for (const TensorSpec& spec : BigsTensorSpecs(config, DType::kF32, {})) {
    int64_t elements = 1;
    for (const int64_t size : spec.shape) elements *= size;
    parameters += elements;
  }
  return parameters;
}

TEST(BigsShapesTest, PresetsHaveThePublishedSizes) {
  EXPECT_EQ(Parameters(BigsPreset("bigs-128").value()), 346314134);
  EXPECT_EQ(Parameters(BigsPreset("bigs-512").value()), 346707350);
  EXPECT_EQ(Parameters(BigsPreset("bigs-4096").value()), 346707350 + (4096 - 512) * 1024);
  EXPECT_THAT(Message(BigsPreset("bigs-64").status()), HasSubstr("bigs-128|bigs-512|bigs-4096"));
}

TEST(BigsShapesTest, OnlyMatricesHaveTheMatrixType) {
  BigsConfig config = SmallBigs();
  config.tie_word_embeddings = false;
  for (const TensorSpec& spec : BigsTensorSpecs(config, DType::kBF16, {.pooler = true})) {
    const bool table = spec.name == kBigsPositions || spec.name == kBigsTypes;
    const bool matrix = spec.shape.size() == 2 && spec.name.ends_with(".weight") && !table;
    EXPECT_EQ(spec.dtype, matrix ? DType::kBF16 : DType::kF32) << spec.name;
  }
}

TEST(BigsShapesTest, SeveralHeadsAreALeadingAxis) {
  BigsConfig config = SmallBigs();
  config.num_ssm_heads = 4;
  const ShapeMap shapes = Shapes(config);
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shapes.at("bigs.encoder.layer.1.bs4.D"), (Shape{4, 1}));
  EXPECT_EQ(shapes.at("bigs.encoder.layer.1.bs4.kernel.C"), (Shape{4, 5, 2}));
  EXPECT_EQ(shapes.at("bigs.encoder.layer.1.bs4.kernel.A_im"), (Shape{4, 5}));
  EXPECT_EQ(shapes.at("bigs.encoder.layer.1.bs4.kernel.log_step"), (Shape{4, 1}));
}

// What train saves is in the order of these.
void ExpectTheShapesOfANewModel(const BigsConfig& config) {
  ShapeMap expected;
  for (const InitialParameter& parameter : InitialWeights(config, {})) {
    expected[parameter.name] = parameter.shape;
  }
  ShapeMap shapes;
  for (const TensorSpec& spec : BigsTensorSpecs(config, DType::kF32, {.positions = false})) {
    shapes[spec.name] = spec.shape;
  }
  EXPECT_EQ(shapes, expected);
}

TEST(BigsShapesTest, ANewModelHasAllOfThemAndNoOthers) {
  for (const EncoderHead head :
       {EncoderHead::kNone, EncoderHead::kMaskedLm, EncoderHead::kSequenceClassification,
        EncoderHead::kMultipleChoice, EncoderHead::kTokenClassification,
        EncoderHead::kQuestionAnswering}) {
    SCOPED_TRACE(Name(head));
    BigsConfig config = SmallBigs();
    config.head = head;
    config.labels = {"LABEL_0", "LABEL_1", "LABEL_2"};
    config.tie_word_embeddings = false;
    ExpectTheShapesOfANewModel(config);
  }
}

TEST(BigsShapesTest, ANewModelOfAnyLayersHasAllOfThemAndNoOthers) {
  BigsConfig config = SmallBigs();
  config.position_table = false;
  config.num_attention_heads = 3;
  for (const EncoderBlock block : {EncoderBlock::kGated, EncoderBlock::kStack}) {
    for (const EncoderRouting routing : {EncoderRouting::kSsm, EncoderRouting::kAttention}) {
      config.block = block;
      config.routing = routing;
      ExpectTheShapesOfANewModel(config);
    }
  }
}

// The four kinds of layers, one and several heads: the shapes tell the whole configuration.
TEST(DecideBigsConfigTest, ShapesTellTheKindOfLayers) {
  for (const EncoderBlock block : {EncoderBlock::kGated, EncoderBlock::kStack}) {
    for (const EncoderRouting routing : {EncoderRouting::kSsm, EncoderRouting::kAttention}) {
      BigsConfig config = SmallBigs();
      config.block = block;
      config.routing = routing;
      const bool attention = routing == EncoderRouting::kAttention;
      config.num_attention_heads = attention ? 3 : 0;
      if (attention) config.num_ssm = 64;
      config.num_ssm_heads = attention || block == EncoderBlock::kGated ? 1 : 2;
      const auto decided =
          DecideBigsConfig(Shapes(config), {.attention_heads = config.num_attention_heads});
      ASSERT_TRUE(decided.ok()) << Message(decided.status());
      EXPECT_EQ(ToJson(*decided), ToJson(config));
    }
  }
}

TEST(DecideBigsConfigTest, ShapesTellTheHead) {
  for (const EncoderHead head :
       {EncoderHead::kNone, EncoderHead::kMaskedLm, EncoderHead::kSequenceClassification,
        EncoderHead::kQuestionAnswering}) {
    BigsConfig config = SmallBigs();
    config.head = head;
    if (head == EncoderHead::kSequenceClassification) {
      config.labels = {"LABEL_0", "LABEL_1", "LABEL_2"};
    }
    const auto decided = DecideBigsConfig(Shapes(config), {});
    ASSERT_TRUE(decided.ok()) << Message(decided.status());
    EXPECT_EQ(ToJson(*decided), ToJson(config));
  }
}

TEST(DecideBigsConfigTest, WhatTensorsCannotTellMustBeGiven) {
  BigsConfig choice = SmallBigs();
  choice.head = EncoderHead::kMultipleChoice;
  EXPECT_THAT(DecideError(Shapes(choice), {}),
              AllOf(HasSubstr("'classifier.weight' has one row"), HasSubstr("--config FILE")));
  EXPECT_EQ(DecideError(Shapes(choice),
                        {.config_json = R"({"architectures": ["BiGSForMultipleChoice"]})"}),
            "OK");
  BigsConfig attention = SmallBigs();
  attention.routing = EncoderRouting::kAttention;
  EXPECT_THAT(DecideError(Shapes(attention), {}),
              AllOf(HasSubstr("--attn-heads N"), HasSubstr("num_attention_heads")));
  EXPECT_THAT(DecideError(Shapes(attention),
                          {.config_json = R"({"num_attention_heads": 4})", .attention_heads = 3}),
              HasSubstr("--attn-heads is 3; the model has 4"));
}

TEST(DecideBigsConfigTest, TheSourceTellsTheGeluUnlessToldOtherwise) {
  const ShapeMap shapes = Shapes(SmallBigs());
  const auto gelu = [&](const BigsHints& hints) {
    return DecideBigsConfig(shapes, hints).value().layer_gelu;
  };
  EXPECT_EQ(gelu({}), Activation::kGeluErf);
  EXPECT_EQ(gelu({.flax = true}), Activation::kGeluTanh);
  const std::string erf = R"({"layer_gelu": "erf"})";
  EXPECT_EQ(gelu({.config_json = erf, .flax = true}), Activation::kGeluErf);
  EXPECT_EQ(gelu({.config_json = erf, .layer_gelu = "tanh"}), Activation::kGeluTanh);
  const ShapeMap published = Shapes(BigsPreset("bigs-128").value());
  const auto preset = DecideBigsConfig(published, {.preset = "bigs-128", .flax = true});
  ASSERT_TRUE(preset.ok()) << Message(preset.status());
  EXPECT_EQ(preset->layer_gelu, Activation::kGeluTanh);
}

TEST(DecideBigsConfigTest, PaddingIsTheLongestInputUnlessToldOtherwise) {
  const ShapeMap shapes = Shapes(SmallBigs());
  const auto pad_to = [&](const BigsHints& hints) {
    return DecideBigsConfig(shapes, hints).value().pad_to;
  };
  EXPECT_EQ(pad_to({}), 17);
  EXPECT_EQ(pad_to({.config_json = R"({"pad_to": 9})"}), 9);
  EXPECT_EQ(pad_to({.config_json = R"({"pad_to": 9})", .pad_to = 11}), 11);
  EXPECT_EQ(pad_to({.pad_to = 0}), 0);
  EXPECT_THAT(DecideError(shapes, {.pad_to = 18}), HasSubstr("pad_to is 18, expected"));
}

TEST(DecideBigsConfigTest, BadHintsAndShapesAreNamed) {
  ShapeMap shapes = Shapes(SmallBigs());
  EXPECT_THAT(DecideError(shapes, {.config_json = "[1]"}), HasSubstr("expected a JSON object"));
  EXPECT_THAT(DecideError(shapes, {.config_json = R"({"model_type": "h3"})"}),
              HasSubstr("model_type is \"h3\", expected \"BiGS\""));
  EXPECT_THAT(DecideError(shapes, {.config_json = R"({"architectures": ["BiGSForPreTraining"]})"}),
              HasSubstr("architectures is"));
  shapes[BigsLayerName(0, "fs4.kernel.A_re")] = {1, 2, 3};
  EXPECT_THAT(DecideError(shapes, {}), HasSubstr("fs4.kernel.A_re' has shape [1, 2, 3]"));
  shapes.erase(kBigsTypes);
  EXPECT_THAT(DecideError(shapes, {}), HasSubstr("token_type_embeddings.weight' is missing"));
  shapes[kBigsWords] = {int64_t{1} << 40, 12};
  EXPECT_THAT(DecideError(shapes, {}), HasSubstr("word_embeddings.weight' has shape"));
}

}  // namespace
}  // namespace hippodrome::decide_bigs_config_test
