// Conversion of BiGS models from every form in which they are published.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/config/bigs_config.h"
#include "engine/model_directory.h"
#include "kernels/make_backend.h"
#include "tests/tools/convert/bigs_files.h"
#include "tests/tools/convert/convert_fixture.h"
#include "tests/tools/convert/msgpack_builder.h"
#include "tests/tools/convert/torch_builder.h"
#include "tools/convert/convert.h"
#include "tools/convert/models/bigs_shapes.h"

namespace hippodrome::convert_bigs_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ConvertBigsTest : public ConvertFixture {
 protected:
  using ConvertFixture::Error;
  std::string Error(const ModelFile& model, const BigsConfig& config) {
    return Error({.source = WriteModelFile(model), .config = WriteConfig(config)});
  }
  static std::string WriteConfig(const BigsConfig& config) {
    return WriteTemporary("config.json", ToJson(config));
  }
};

// A model as a classifier of three classes.
BigsConfig Classifier() {
  BigsConfig config = SmallBigs();
  config.head = EncoderHead::kSequenceClassification;
  config.labels = {"entailment", "neutral", "contradiction"};
  return config;
}

TEST_F(ConvertBigsTest, EveryFormGivesTheSameModel) {
  for (const BigsConfig& config : {SmallBigs(), Classifier()}) {
    const ModelFile model = RandomBigs(config);
    for (const std::string& source :
         {WriteTemporary("zip.bin", BigsZipFile(model)),
          WriteTemporary("legacy.bin", BigsLegacyFile(model)),
          WriteTemporary("flax.msgpack", BigsFlaxFile(model)),
          WriteTemporary("bare.msgpack", BigsFlaxFile(model, "bert")), WriteModelFile(model)}) {
      SCOPED_TRACE(source);
      fs::remove_all(out_);
      const absl::Status status = Run({.source = source, .config = WriteConfig(config)});
      ASSERT_TRUE(status.ok()) << Message(status);
      ExpectEqual(Written(), model);
      EXPECT_EQ(ToJson(ReadBigsConfig(out_).value()), ToJson(config));
    }
  }
}

TEST_F(ConvertBigsTest, NoConfigIsNeeded) {
  const ModelFile model = RandomBigs(SmallBigs());
  ASSERT_EQ(Error({.source = WriteTemporary("flax.msgpack", BigsFlaxFile(model))}), "OK");
  BigsConfig expected = SmallBigs();
  expected.layer_gelu = Epilogue::Activation::kGeluTanh;
  EXPECT_EQ(ToJson(ReadBigsConfig(out_).value()), ToJson(expected));
  ASSERT_EQ(Error({.source = WriteTemporary("zip.bin", BigsZipFile(model)), .pad_to = 0}), "OK");
  expected = SmallBigs();
  expected.pad_to = 0;
  EXPECT_EQ(ToJson(ReadBigsConfig(out_).value()), ToJson(expected));
}

TEST_F(ConvertBigsTest, FlaxMaskedLmHasNoPooler) {
  ModelFile model = RandomBigs(SmallBigs());
  model.erase("bigs.pooler.dense.weight");
  model.erase("bigs.pooler.dense.bias");
  ASSERT_EQ(Error({.source = WriteTemporary("flax.msgpack", BigsFlaxFile(model))}), "OK");
  ExpectEqual(Written(), model);
}

TEST_F(ConvertBigsTest, AClassifierNeedsItsPoolerAndItsHead) {
  ModelFile model = RandomBigs(Classifier());
  model.erase("bigs.pooler.dense.weight");
  EXPECT_THAT(Error(model, Classifier()),
              HasSubstr("'bigs.pooler.dense.weight' is missing; expected shape [12, 12]"));
  EXPECT_THAT(Error(RandomBigs(SmallBigs()), Classifier()),
              HasSubstr("'classifier.weight' is missing; expected shape [3, 12]"));
}

TEST_F(ConvertBigsTest, UntiedDecodersAreKept) {
  BigsConfig config = SmallBigs();
  config.tie_word_embeddings = false;
  const ModelFile model = RandomBigs(config);
  ASSERT_EQ(Error(model, config), "OK");
  ExpectEqual(Written(), model);
  const std::string flax = WriteTemporary("flax.msgpack", BigsFlaxFile(model));
  ASSERT_EQ(Error({.source = flax, .config = WriteConfig(config)}), "OK");
  ExpectEqual(Written(), model);
}

TEST_F(ConvertBigsTest, CopiesMustBeCopies) {
  ModelFile decoder = RandomBigs(SmallBigs());
  decoder[kBigsDecoder] = decoder[kBigsWords];
  decoder[kBigsDecoder].values.back() += 1;
  EXPECT_THAT(Error(decoder, SmallBigs()), HasSubstr("\"tie_word_embeddings\": false"));
  ModelFile bias = RandomBigs(SmallBigs());
  bias["cls.predictions.decoder.bias"] = bias["cls.predictions.bias"];
  bias["cls.predictions.decoder.bias"].values[0] += 1;
  EXPECT_THAT(Error(bias, SmallBigs()), HasSubstr("differs from 'cls.predictions.bias'"));
  bias["cls.predictions.decoder.bias"] = {{2}, {0, 0}};
  EXPECT_THAT(Error(bias, SmallBigs()), HasSubstr("decoder.bias' has shape [2]; expected [23]"));
}

TEST_F(ConvertBigsTest, AMissingPositionTableIsFoundOnlyWhereItIsNeeded) {
  BigsConfig config = SmallBigs();
  ModelFile model = RandomBigs(config);
  model.erase(kBigsPositions);
  EXPECT_THAT(Error(model, config), HasSubstr("position_embeddings.weight' is missing"));
  config.position_table = false;
  ASSERT_EQ(Error(model, config), "OK");
  ExpectEqual(Written(), model);
}

TEST_F(ConvertBigsTest, Bf16AppliesToMatricesOnly) {
  const ModelFile model = RandomBigs(SmallBigs());
  const std::string source = WriteTemporary("flax.msgpack", BigsFlaxFile(model));
  ASSERT_TRUE(Run({.source = source, .matrix_dtype = DType::kBF16}).ok());
  const auto file = SafetensorsFile::Open(out_ + "/model.safetensors").value();
  for (const auto& [name, view] : file->tensors()) {
    const std::vector<float> values = ToFloats(view).value();
    for (size_t i = 0; i < values.size(); ++i) {
      const float exact = model.at(name).values[i];
      ASSERT_EQ(values[i], view.dtype == DType::kBF16 ? ToFloat(ToBF16(exact)) : exact) << name;
    }
  }
  EXPECT_EQ(file->Find(kBigsWords)->dtype, DType::kBF16);
}

TEST_F(ConvertBigsTest, IntegersOf8BitsAreKeptForTheEmbeddingAndTheHead) {
  const std::string source = WriteTemporary("model.bin", BigsZipFile(RandomBigs(SmallBigs())));
  ASSERT_TRUE(Run({.source = source, .matrix_dtype = DType::kI4}).ok());
  const auto file = SafetensorsFile::Open(out_ + "/model.safetensors").value();
  for (const auto& [name, tensor] : file->tensors()) {
    if (file->Find(name + "_scale") == nullptr) {
      EXPECT_EQ(tensor.dtype, name.ends_with("_scale") ? DType::kBF16 : DType::kF32) << name;
    } else {
      EXPECT_EQ(tensor.dtype, name.find(".layer.") == std::string::npos ? DType::kI8 : DType::kU8)
          << name;
    }
  }
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto loaded = LoadEncoderDirectory(*backend, out_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->weights, DType::kI4);
}

TEST_F(ConvertBigsTest, ConfigsThatContradictTheTensorsNameTheTensor) {
  const ModelFile model = RandomBigs(SmallBigs());
  BigsConfig config = SmallBigs();
  config.num_ssm = 6;
  EXPECT_THAT(Error(model, config), HasSubstr("fs4.kernel.C' has shape [5, 2]; expected [6, 2]"));
  config = SmallBigs();
  config.num_hidden_layers = 3;
  EXPECT_THAT(Error(model, config), HasSubstr("'bigs.encoder.layer.2.LayerNorm.weight' is missi"));
  config.num_hidden_layers = 1;
  EXPECT_THAT(Error(model, config), HasSubstr("' of shape [12] is not part of this BiGS model"));
  config = SmallBigs();
  config.num_ssm_heads = 2;
  EXPECT_THAT(Error(model, config), HasSubstr("fs4.D' has shape [1]; expected [2, 1]"));
  config = SmallBigs();
  config.max_position_embeddings = 18;
  EXPECT_THAT(Error(model, config), HasSubstr("has shape [17, 12]; expected [18, 12]"));
  const std::string source = WriteModelFile(model);
  EXPECT_THAT(Error({.source = source, .preset = "bigs-128"}),
              HasSubstr("word_embeddings.weight' has shape [23, 12]; expected [30522, 1024]"));
}

TEST_F(ConvertBigsTest, FamiliesAreNotMixed) {
  const std::string encoder = WriteModelFile(RandomBigs(SmallBigs()));
  EXPECT_THAT(Error({.source = encoder, .preset = "h3-125m"}),
              HasSubstr("expected an H3 checkpoint"));
  EXPECT_THAT(
      Error({.source = encoder, .config = WriteTemporary("h3.json", R"({"model_type": "h3"})")}),
      HasSubstr("model_type is \"h3\", expected \"BiGS\""));
  const std::string decoder = WriteModelFile(GoldenModel());
  EXPECT_THAT(Error({.source = decoder, .config = WriteConfig(SmallBigs())}),
              HasSubstr("expected a BiGS checkpoint"));
  EXPECT_THAT(Error({.source = decoder, .attention_heads = 2, .pad_to = 0}),
              HasSubstr("--pad-to is for BiGS models"));
  EXPECT_THAT(Error({.source = decoder, .attention_heads = 2, .layer_gelu = "erf"}),
              HasSubstr("--layer-gelu is for BiGS models"));
}

TEST_F(ConvertBigsTest, KernelsOfFlaxMustBeMatrices) {
  using msgpack::FlaxArray;
  const std::string file = msgpack::Tree(
      {{"x/embeddings/word_embeddings/embedding", FlaxArray({1, 1}, "float32", Bytes({1}))},
       {"x/encoder/layer/0/dv/kernel", FlaxArray({1}, "float32", Bytes({1}))}});
  EXPECT_THAT(Error({.source = WriteTemporary("flax.msgpack", file)}),
              HasSubstr("'x/encoder/layer/0/dv/kernel' has shape [1]; expected a matrix"));
  const std::string integers = msgpack::Tree(
      {{"embeddings/word_embeddings/embedding", FlaxArray({1, 1}, "int32", Bytes({1}))},
       {"encoder/layer/0/dv/bias", FlaxArray({1}, "float32", Bytes({1}))}});
  EXPECT_THAT(Error({.source = WriteTemporary("flax.msgpack", integers),
                     .config = WriteConfig(SmallBigs())}),
              HasSubstr("is of type int32; expected F32"));
}

TEST_F(ConvertBigsTest, TokenizersAreChecked) {
  const fs::path folder = WriteTemporary("tokenizer", "");
  fs::remove_all(folder);
  fs::create_directory(folder);
  const ConvertOptions options{.source = WriteModelFile(RandomBigs(SmallBigs())),
                               .tokenizer = folder};
  EXPECT_THAT(Error(options), HasSubstr("expected vocab.txt or bert-base-uncased-vocab.txt"));
  const std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n";
  std::ofstream(folder / "bert-base-uncased-vocab.txt") << vocab;
  ASSERT_EQ(Error(options), "OK");
  std::ifstream copy(out_ + "/vocab.txt");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(copy), {}), vocab);
  fs::remove_all(out_);
  std::string large = vocab;
  for (int i = 0; i < 17; ++i) large += "word" + std::to_string(i) + "\n";
  std::ofstream(folder / "vocab.txt") << large;
  EXPECT_THAT(Error(options), HasSubstr("has 24 tokens; the model's vocabulary has 23"));
  std::ofstream(folder / "vocab.txt") << "a\nb\n";
  EXPECT_THAT(Error(options), HasSubstr("tokenizer " + folder.string()));
}

}  // namespace
}  // namespace hippodrome::convert_bigs_test
