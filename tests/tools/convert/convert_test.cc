#include "tools/convert/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_matrix.h"
#include "engine/checkpoint/weights_source.h"
#include "engine/config/config.h"
#include "tests/tools/convert/convert_fixture.h"
#include "tests/tools/convert/model_file.h"
#include "tests/tools/convert/torch_builder.h"

namespace hippodrome::convert_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kData = std::string(HIPPODROME_TESTDATA) + "/convert/";

class ConvertTest : public ConvertFixture {
 protected:
  // Converts a changed golden model.
  std::string Error(const ModelFile& model, int64_t heads = 2) {
    return ConvertFixture::Error({.source = WriteModelFile(model), .attention_heads = heads});
  }
  // The golden weights without the tied head.
  static ModelFile Expected() {
    ModelFile model = GoldenModel();
    model.erase("lm_head.weight");
    return model;
  }
};

TEST_F(ConvertTest, EveryContainerAndGenerationGivesTheSameModel) {
  for (const char* name : {"weights.pt", "weights_lightning_oldnames.pt",
                           "weights_oldnames_tarless.pt", "weights.safetensors"}) {
    SCOPED_TRACE(name);
    fs::remove_all(out_);
    const absl::Status status = Run({.source = kData + name});
    ASSERT_TRUE(status.ok()) << Message(status);
    ExpectEqual(Written(), Expected());
    const H3Config config = ReadH3Config(out_).value();
    EXPECT_EQ(config.vocab_size, 60);
    EXPECT_EQ(config.padded_vocab_size, 64);
    EXPECT_EQ(config.attention_heads, 2);
  }
}

TEST_F(ConvertTest, JoinedProjectionsAreSplit) {
  ModelFile model = GoldenModel();
  JoinProjections(model);
  ASSERT_EQ(Error(model), "OK");
  ExpectEqual(Written(), Expected());
}

TEST_F(ConvertTest, Bf16AppliesToMatricesOnly) {
  ASSERT_TRUE(Run({.source = kData + "weights.pt", .matrix_dtype = DType::kBF16}).ok());
  const auto file = SafetensorsFile::Open(out_ + "/model.safetensors").value();
  const ModelFile golden = Expected();
  int matrices = 0;
  for (const auto& [name, view] : file->tensors()) {
    const bool matrix = view.shape.size() == 2 && name.ends_with(".weight");
    EXPECT_EQ(view.dtype, matrix ? DType::kBF16 : DType::kF32) << name;
    matrices += matrix ? 1 : 0;
    const std::vector<float> values = ToFloats(view).value();
    for (size_t i = 0; i < values.size(); ++i) {
      const float exact = golden.at(name).values[i];
      ASSERT_EQ(values[i], matrix ? ToFloat(ToBF16(exact)) : exact) << name;
    }
  }
  EXPECT_EQ(matrices, 1 + 2 * 6 + 4);
}

// The groups of a matrix of the golden model as they are read back.
void ExpectQuantized(const SafetensorsFile& file, const std::string& name, DType weights,
                     const ModelTensor& golden) {
  FileWeights source(file);
  const auto matrix = GetMatrix(source, name, golden.shape[0], golden.shape[1]);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->dtype, weights) << name;
  const QuantizedRows rows = QuantizeRows(golden.values, golden.shape[1], weights);
  EXPECT_TRUE(std::ranges::equal(matrix->values.data, rows.values)) << name;
  EXPECT_EQ(std::memcmp(matrix->scale.data.data(), rows.scales.data(), matrix->scale.data.size()),
            0)
      << name;
}

TEST_F(ConvertTest, IntegersAndScalesReplaceTheMatricesOnly) {
  const ModelFile golden = Expected();
  for (const DType weights : {DType::kI8, DType::kI4}) {
    fs::remove_all(out_);
    ASSERT_TRUE(Run({.source = kData + "weights.pt", .matrix_dtype = weights}).ok());
    const auto file = SafetensorsFile::Open(out_ + "/model.safetensors").value();
    EXPECT_EQ(file->tensors().size(), golden.size() + 1 + 2 * 6 + 4);
    for (const auto& [name, tensor] : golden) {
      if (tensor.shape.size() == 2 && name.ends_with(".weight")) {
        const bool embedding = name == "backbone.embeddings.word_embeddings.weight";
        ExpectQuantized(*file, name, embedding ? DType::kI8 : weights, tensor);
      } else {
        EXPECT_EQ(ToFloats(*file->Find(name)).value(), tensor.values) << name;
      }
    }
  }
}

TEST_F(ConvertTest, ValuesThatHaveNoIntegersAreNamed) {
  ModelFile model = GoldenModel();
  const std::string name = "backbone.layers.0.mlp.fc1.weight";
  model[name].values[7] = NAN;
  EXPECT_THAT(
      ConvertFixture::Error(
          {.source = WriteModelFile(model), .matrix_dtype = DType::kI4, .attention_heads = 2}),
      HasSubstr(name + ": element 7 is not a finite number"));
}

TEST_F(ConvertTest, IntegersAreNoSource) {
  ASSERT_TRUE(Run({.source = kData + "weights.pt", .matrix_dtype = DType::kI8}).ok());
  const std::string source = out_ + "/model.safetensors";
  ConvertOptions options{.source = source, .attention_heads = 2};
  options.out = WriteTemporary("again", "");
  fs::remove_all(options.out);
  const absl::Status status = Convert(options, [](int64_t, int64_t) {}).status();
  EXPECT_THAT(Message(status), HasSubstr("of type I8; expected F32, F16, BF16 or F64"));
}

TEST_F(ConvertTest, AHeadEqualToTheEmbeddingIsDropped) {
  ModelFile model = GoldenModel();
  ASSERT_EQ(Error(model), "OK");
  model.erase("lm_head.weight");
  ASSERT_EQ(Error(model), "OK");
  ExpectEqual(Written(), Expected());
}

TEST_F(ConvertTest, AnotherHeadIsRefused) {
  ModelFile model = GoldenModel();
  model["lm_head.weight"].values.back() += 1;
  EXPECT_THAT(Error(model), HasSubstr("not tied are not supported"));
}

TEST_F(ConvertTest, UnknownHeadCountIsRefusedWithAdvice) {
  EXPECT_THAT(Error(GoldenModel(), 0), HasSubstr("give --attn-heads N"));
}

TEST_F(ConvertTest, ImpossibleHeadCountIsRefused) { EXPECT_NE(Error(GoldenModel(), 5), "OK"); }

TEST_F(ConvertTest, WrongTensorsAreNamed) {
  ModelFile missing = GoldenModel();
  missing.erase("backbone.layers.2.norm1.bias");
  EXPECT_THAT(Error(missing), HasSubstr("'backbone.layers.2.norm1.bias' is missing"));
  ModelFile extra = GoldenModel();
  extra["backbone.layers.1.mixer.unknown"] = {{1}, {0}};
  EXPECT_THAT(Error(extra), HasSubstr("mixer.unknown' of shape [1] is not part of an H3 model"));
  ModelFile shape = GoldenModel();
  shape["backbone.ln_f.bias"] = {{16, 2}, std::vector<float>(32)};
  EXPECT_THAT(Error(shape), HasSubstr("'backbone.ln_f.bias' has shape [16, 2]; expected [32]"));
  ModelFile joined = GoldenModel();
  JoinProjections(joined);
  joined["backbone.layers.0.mixer.Wqkv.bias"] = {{95}, std::vector<float>(95)};
  EXPECT_THAT(Error(joined), HasSubstr("expected rows in 3 equal parts"));
}

TEST_F(ConvertTest, WeightsThatAreNoFloatsAreRefused) {
  using pickled::Dict, pickled::Storage, pickled::Text, pickled::Whole;
  const std::string pickle =
      Whole(Dict({Text("backbone.layers.0.norm1.weight"),
                  pickled::Tensor(Storage("LongStorage", "0", 1), 0, {1}, {1})}));
  const absl::Status status = Run(
      {.source = WriteTemporary("model.pt", ZipFile(pickle, {{"0", std::string(8, '\0'), 1}}))});
  EXPECT_THAT(Message(status), HasSubstr("is of type LongStorage; expected F32"));
}

TEST_F(ConvertTest, SmallFilesCannotFillTheDisk) {
  using pickled::Dict, pickled::Storage, pickled::Text, pickled::Whole;
  std::vector<std::string> items;
  for (const auto& [name, tensor] : GoldenModel()) {
    std::vector<int64_t> shape = tensor.shape;
    if (name.ends_with("word_embeddings.weight") || name == "lm_head.weight") shape[0] = 1 << 24;
    const std::vector<int64_t> strides(shape.size(), 0);
    items.push_back(Text(name));
    items.push_back(pickled::Tensor(Storage("FloatStorage", "0", 1), 0, shape, strides));
  }
  const std::string file = ZipFile(Whole(Dict(items)), {{"0", Bytes({1}), 1}});
  const absl::Status status =
      Run({.source = WriteTemporary("model.pt", file), .attention_heads = 2});
  EXPECT_THAT(Message(status), HasSubstr("expected at most 4 times the file"));
}

// The vocab.json of a tokenizer without merges: one token per byte.
std::string ByteVocabulary() {
  std::string json;
  int shifted = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool visible = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    const int code = visible ? byte : shifted++;
    char entry[32];
    std::snprintf(entry, sizeof entry, "%s\"\\u%04x\": %d", byte == 0 ? "" : ", ", code, byte);
    json += entry;
  }
  return "{" + json + "}";
}

TEST_F(ConvertTest, TokenizerFilesAreRenamed) {
  const fs::path folder = WriteTemporary("tokenizer", "");
  fs::remove_all(folder);
  fs::create_directory(folder);
  std::ofstream(folder / "gpt2-encoder.json") << ByteVocabulary();
  std::ofstream(folder / "gpt2-vocab.bpe") << "#version: 0.2\n";
  ModelFile model = GoldenModel();
  model.erase("lm_head.weight");
  model["backbone.embeddings.word_embeddings.weight"] = {{256, 32}, std::vector<float>(256 * 32)};
  const std::string source = WriteModelFile(model);
  const absl::Status status = Run({.source = source, .tokenizer = folder, .attention_heads = 2});
  ASSERT_TRUE(status.ok()) << Message(status);
  EXPECT_TRUE(fs::exists(out_ + "/vocab.json"));
  EXPECT_TRUE(fs::exists(out_ + "/merges.txt"));
  EXPECT_THAT(Message(Run({.source = kData + "weights.pt", .tokenizer = folder})),
              HasSubstr("has 256 tokens; the model's vocabulary has 60"));
  fs::remove_all(folder);
  EXPECT_THAT(Message(Run({.source = source, .tokenizer = folder, .attention_heads = 2})),
              HasSubstr("no tokenizer in"));
}

TEST_F(ConvertTest, OtherFilesOfTheOutputStay) {
  fs::create_directory(out_);
  std::ofstream(out_ + "/notes.txt") << "mine";
  EXPECT_FALSE(Run({.source = kData + "config.json"}).ok());
  ASSERT_TRUE(Run({.source = kData + "weights.pt"}).ok());
  ASSERT_TRUE(Run({.source = kData + "weights.pt"}).ok());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(out_)) names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::UnorderedElementsAre("notes.txt", "README.md", "config.json",
                                                   "model.safetensors"));
}

TEST_F(ConvertTest, OutputsThatCannotBeMadeAreNamed) {
  out_ = "/no/such/folder/out";
  EXPECT_THAT(Message(Run({.source = kData + "weights.pt"})), HasSubstr("/no/such/folder/out"));
  out_ = kData + "weights.pt";
  EXPECT_THAT(Message(Run({.source = kData + "weights.pt"})), HasSubstr("cannot be made"));
}

}  // namespace
}  // namespace hippodrome::convert_test
