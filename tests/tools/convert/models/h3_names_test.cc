#include "tools/convert/models/h3_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::h3_names_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Mapped(const std::vector<std::string>& names, bool lightning = false) {
  const auto tensors = MapH3Names(names, lightning);
  EXPECT_TRUE(tensors.ok()) << Message(tensors.status());
  std::vector<std::string> result;
  if (!tensors.ok()) return result;
  for (const MappedTensor& tensor : *tensors) result.push_back(tensor.name);
  return result;
}

TEST(H3NamesTest, CurrentNamesStay) {
  const std::vector<std::string> names = {"backbone.embeddings.word_embeddings.weight",
                                          "backbone.layers.0.norm1.weight",
                                          "backbone.layers.0.mixer.Wqkv.weight",
                                          "backbone.layers.0.mixer.out_proj.weight",
                                          "backbone.ln_f.weight",
                                          "lm_head.weight"};
  EXPECT_EQ(Mapped(names), names);
}

TEST(H3NamesTest, LightningKeepsOnlyTheModel) {
  EXPECT_THAT(Mapped({"model.backbone.layers.0.D", "val/loss.total", "model.lm_head.weight"}, true),
              ElementsAre("backbone.layers.0.D", "lm_head.weight"));
}

TEST(H3NamesTest, OldNamesAreRewritten) {
  EXPECT_THAT(
      Mapped({"embedding.weight", "s4seq.encoder.layers.1.mixer.D"}),
      ElementsAre("backbone.embeddings.word_embeddings.weight", "backbone.layers.1.mixer.D"));
}

TEST(H3NamesTest, OldLayerNormPlacementMovesEveryNorm) {
  EXPECT_THAT(Mapped({"s4seq.encoder.norm.weight", "s4seq.encoder.norm.bias",
                      "s4seq.encoder.layers.0.norm1.weight", "s4seq.encoder.layers.0.norm2.weight",
                      "s4seq.encoder.layers.1.norm1.bias", "s4seq.encoder.layers.1.norm2.bias",
                      "s4seq.encoder.layers.0.mlp.fc1.bias"}),
              ElementsAre("backbone.layers.0.norm1.weight", "backbone.layers.0.norm1.bias",
                          "backbone.layers.0.norm2.weight", "backbone.layers.1.norm1.weight",
                          "backbone.layers.1.norm2.bias", "backbone.ln_f.bias",
                          "backbone.layers.0.mlp.fc1.bias"));
}

TEST(H3NamesTest, JoinedProjectionsOfAStateSpaceLayerAreSplit) {
  const auto tensors =
      MapH3Names({"backbone.layers.2.mixer.kernel.kernel.log_dt",
                  "backbone.layers.2.mixer.Wqkv.bias", "backbone.layers.2.mixer.out_proj.weight"},
                 false);
  ASSERT_TRUE(tensors.ok());
  ASSERT_EQ(tensors->size(), 5u);
  EXPECT_EQ((*tensors)[1].name, "backbone.layers.2.mixer.q_proj.bias");
  EXPECT_EQ((*tensors)[2].name, "backbone.layers.2.mixer.k_proj.bias");
  EXPECT_EQ((*tensors)[3].name, "backbone.layers.2.mixer.v_proj.bias");
  EXPECT_EQ((*tensors)[3].source, 1u);
  EXPECT_EQ((*tensors)[3].part, 2);
  EXPECT_EQ((*tensors)[3].parts, 3);
  EXPECT_EQ((*tensors)[4].name, "backbone.layers.2.mixer.output_linear.weight");
}

TEST(H3NamesTest, CollisionsAreRefused) {
  const auto tensors = MapH3Names(
      {"backbone.layers.0.D", "embedding.weight", "backbone.embeddings.word_embeddings.weight"},
      false);
  EXPECT_THAT(Message(tensors.status()), HasSubstr("'embedding.weight' and"));
}

TEST(H3NamesTest, OtherModelsAreRefused) {
  EXPECT_THAT(Message(MapH3Names({"transformer.h.0.attn.weight"}, false).status()),
              HasSubstr("expected an H3 checkpoint"));
  EXPECT_FALSE(MapH3Names({"backbone.layers.0.D"}, /*lightning=*/true).ok());
}

TEST(H3NamesTest, LayerNumbersAreBounded) {
  EXPECT_EQ(SplitLayerName("backbone.layers.12.norm1.weight")->layer, 12);
  EXPECT_EQ(SplitLayerName("backbone.layers.12.norm1.weight")->rest, "norm1.weight");
  for (const char* name : {"backbone.layers.99999.x", "backbone.layers.-1.x", "backbone.layers..x",
                           "backbone.layers.1x.y", "backbone.layers.1", "layers.1.x"}) {
    EXPECT_FALSE(SplitLayerName(name)) << name;
  }
}

}  // namespace
}  // namespace hippodrome::h3_names_test
