#include "tools/convert/models/bigs_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::bigs_names_test {
namespace {

using testing::HasSubstr;

struct Renamed {
  const char* from;
  const char* to;
  bool transposed = false;
};

TEST(BigsNamesTest, MapsFlaxPaths) {
  const Renamed names[] = {
      {"s4_bert/embeddings/word_embeddings/embedding", "bigs.embeddings.word_embeddings.weight"},
      {"s4_bert/embeddings/LayerNorm/scale", "bigs.embeddings.LayerNorm.weight"},
      {"s4_bert/embeddings/LayerNorm/bias", "bigs.embeddings.LayerNorm.bias"},
      {"s4_bert/encoder/layer/7/dv/kernel", "bigs.encoder.layer.7.dv.weight", true},
      {"s4_bert/encoder/layer/7/dv/bias", "bigs.encoder.layer.7.dv.bias"},
      {"s4_bert/encoder/layer/7/fs4/A_re", "bigs.encoder.layer.7.fs4.kernel.A_re"},
      {"s4_bert/encoder/layer/7/bs4/C", "bigs.encoder.layer.7.bs4.kernel.C"},
      {"s4_bert/encoder/layer/7/bs4/log_step", "bigs.encoder.layer.7.bs4.kernel.log_step"},
      {"s4_bert/encoder/layer/7/bs4/D", "bigs.encoder.layer.7.bs4.D"},
      {"s4_bert/pooler/dense/kernel", "bigs.pooler.dense.weight", true},
      {"cls/predictions/decoder/kernel", "cls.predictions.decoder.weight", true},
      {"cls/predictions/bias", "cls.predictions.bias"},
      {"cls/predictions/transform/LayerNorm/scale", "cls.predictions.transform.LayerNorm.weight"},
      {"classifier/kernel", "classifier.weight", true},
  };
  std::vector<std::string> paths;
  for (const Renamed& name : names) paths.emplace_back(name.from);
  const auto tensors = MapBigsNames(paths, true);
  ASSERT_TRUE(tensors.ok()) << Message(tensors.status());
  ASSERT_EQ(tensors->size(), paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ((*tensors)[i].name, names[i].to);
    EXPECT_EQ((*tensors)[i].source, i);
    EXPECT_EQ((*tensors)[i].transposed, names[i].transposed) << names[i].to;
    const bool matrix = names[i].transposed || paths[i].ends_with("embedding");
    const FlaxPlace place = PlaceInFlax(names[i].to, matrix ? 2 : 1);
    EXPECT_EQ(place.path, names[i].from);
    EXPECT_EQ(place.transposed, names[i].transposed) << names[i].to;
  }
}

TEST(BigsNamesTest, KeepsTorchNamesWithoutPositionIds) {
  const std::string words = "bigs.embeddings.word_embeddings.weight";
  const std::string kernel = "bigs.encoder.layer.0.fs4.kernel.C";
  const auto tensors = MapBigsNames({"bigs.embeddings.position_ids", kernel, words}, false);
  ASSERT_TRUE(tensors.ok()) << Message(tensors.status());
  ASSERT_EQ(tensors->size(), 2);
  EXPECT_EQ((*tensors)[0].name, kernel);
  EXPECT_EQ((*tensors)[0].source, 1);
  EXPECT_EQ((*tensors)[1].name, words);
  EXPECT_FALSE((*tensors)[1].transposed);
}

TEST(BigsNamesTest, TakesAnyPrefixAndNone) {
  for (const std::string prefix : {"", "bert.", "s4_bert."}) {
    const auto tensors = MapBigsNames(
        {prefix + "encoder.layer.0.dv.bias", prefix + "embeddings.word_embeddings.weight", "cls.x"},
        false);
    ASSERT_TRUE(tensors.ok()) << Message(tensors.status());
    EXPECT_EQ((*tensors)[0].name, "bigs.encoder.layer.0.dv.bias");
    EXPECT_EQ((*tensors)[1].name, "bigs.embeddings.word_embeddings.weight");
    EXPECT_EQ((*tensors)[2].name, "cls.x");
  }
}

TEST(BigsNamesTest, RefusesOtherModelsAndDuplicates) {
  EXPECT_THAT(Message(MapBigsNames({"encoder.layer.0.dv.bias"}, false).status()),
              HasSubstr("expected a BiGS checkpoint"));
  EXPECT_THAT(Message(MapBigsNames({"bigs.embeddings.word_embeddings.weight"}, false).status()),
              HasSubstr("expected a BiGS checkpoint"));
  EXPECT_THAT(Message(MapBigsNames({"a.b.embeddings.word_embeddings.weight"}, false).status()),
              HasSubstr("expected a BiGS checkpoint"));
  const std::string words = "bigs/embeddings/word_embeddings/";
  EXPECT_THAT(
      Message(MapBigsNames({words + "embedding", words + "weight", "bigs/encoder/layer/0/dv/bias"},
                           true)
                  .status()),
      HasSubstr("both stand for 'bigs.embeddings.word_embeddings.weight'"));
}

TEST(BigsNamesTest, ALayerTellsAnEncoder) {
  EXPECT_TRUE(IsBigsName("bigs.encoder.layer.0.dv.weight"));
  EXPECT_TRUE(IsBigsName("s4_bert/encoder/layer/0/dv/kernel"));
  EXPECT_FALSE(IsBigsName("s4seq.encoder.layers.0.norm1.weight"));
  EXPECT_FALSE(IsBigsName("backbone.layers.0.norm1.weight"));
}

}  // namespace
}  // namespace hippodrome::bigs_names_test
