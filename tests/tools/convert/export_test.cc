#include "tools/convert/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "engine/model_directory.h"
#include "engine/passes/encoder_forward.h"
#include "engine/passes/forward.h"
#include "kernels/make_backend.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/convert/bigs_files.h"
#include "tests/tools/convert/model_file.h"
#include "tests/tools/convert/torch_builder.h"
#include "tools/convert/checkpoint_source.h"
#include "tools/convert/convert.h"

namespace hippodrome::export_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kData = std::string(HIPPODROME_TESTDATA) + "/convert/";
constexpr const char* kWords = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";

class ExportTest : public testing::Test {
 protected:
  // Converts into the directory `name`.
  void Convert(const std::string& name, ConvertOptions options) {
    options.out = directory_.File(name);
    const auto converted = hippodrome::Convert(options, [](int64_t, int64_t) {});
    ASSERT_TRUE(converted.ok()) << Message(converted.status());
  }
  absl::Status Export(const std::string& model, ExportFormat format, const std::string& out) {
    return hippodrome::Export(
               {.model = directory_.File(model), .format = format, .out = directory_.File(out)},
               [](int64_t, int64_t) {})
        .status();
  }
  std::string Error(const std::string& model, ExportFormat format) {
    const absl::Status status = Export(model, format, "refused");
    EXPECT_FALSE(fs::exists(directory_.File("refused")));
    return status.ok() ? "OK" : Message(status);
  }
  void ExpectSameModel(const std::string& a, const std::string& b) {
    for (const char* name : {"/config.json", "/model.safetensors", "/vocab.txt"}) {
      EXPECT_TRUE(FileContent(directory_.File(a + name)) == FileContent(directory_.File(b + name)))
          << name;
    }
  }
  TemporaryDirectory directory_;
};

TEST_F(ExportTest, DecodersComeBackByteForByte) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    SCOPED_TRACE(Name(dtype));
    Convert("model", {.source = kData + "weights.pt", .matrix_dtype = dtype});
    const absl::Status exported = Export("model", ExportFormat::kTorch, "model.pt");
    ASSERT_TRUE(exported.ok()) << Message(exported);
    Convert("again", {.source = directory_.File("model.pt"),
                      .config = directory_.File("model/config.json"),
                      .matrix_dtype = dtype});
    ExpectSameModel("model", "again");
  }
}

TEST_F(ExportTest, DecodersHaveThePublishedNamesShapesAndTypes) {
  Convert("model", {.source = kData + "weights.pt", .matrix_dtype = DType::kBF16});
  ASSERT_TRUE(Export("model", ExportFormat::kTorch, "model.pt").ok());
  const auto source = OpenCheckpoint(directory_.File("model.pt"));
  ASSERT_TRUE(source.ok()) << Message(source.status());
  const auto& tensors = (*source)->tensors();
  ModelFile published = GoldenModel();
  EXPECT_EQ(tensors.size(), published.size());
  size_t words = 0;
  size_t head = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].name;
    EXPECT_EQ(tensors[i].shape, published.at(name).shape) << name;
    const bool matrix = tensors[i].shape.size() == 2 && name.ends_with(".weight");
    EXPECT_EQ(tensors[i].type, matrix ? "BFloat16Storage" : "FloatStorage") << name;
    if (name == "lm_head.weight") head = i;
    if (name.ends_with("word_embeddings.weight")) words = i;
  }
  EXPECT_TRUE((*source)->Same(words, head));
}

// Models of each head.
std::vector<BigsConfig> Encoders() {
  std::vector<BigsConfig> configs(5, SmallBigs());
  configs[1].tie_word_embeddings = false;
  configs[2].head = EncoderHead::kSequenceClassification;
  configs[2].labels = {"entailment", "neutral", "contradiction"};
  configs[2].layer_gelu = Epilogue::Activation::kGeluTanh;
  configs[3].head = EncoderHead::kQuestionAnswering;
  configs[3].pad_to = 0;
  configs[4].head = EncoderHead::kNone;
  configs[4].position_table = false;
  return configs;
}

TEST_F(ExportTest, EncodersComeBackByteForByte) {
  directory_.Write("vocab.txt", kWords);
  for (const BigsConfig& config : Encoders()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const ExportFormat format : {ExportFormat::kHuggingFace, ExportFormat::kFlax}) {
        SCOPED_TRACE(ToJson(config) + Name(dtype) + Name(format));
        for (const char* name : {"model", "exported"}) fs::remove_all(directory_.File(name));
        Convert("model", {.source = WriteModelFile(RandomBigs(config)),
                          .config = directory_.Write("config.json", ToJson(config)),
                          .tokenizer = directory_.path(),
                          .matrix_dtype = dtype});
        const absl::Status exported = Export("model", format, "exported");
        ASSERT_TRUE(exported.ok()) << Message(exported);
        Convert("again", {.source = directory_.File("exported"), .matrix_dtype = dtype});
        ExpectSameModel("model", "again");
      }
    }
  }
}

// All logits of some ids.
std::vector<float> DecoderLogits(const std::string& directory) {
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto loaded = LoadDecoderDirectory(*backend, directory);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return {};
  const std::vector<int32_t> ids = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
  std::vector<float> logits;
  const absl::Status status =
      Forward(*backend, *loaded->model, ids, {}, [&](int64_t, std::span<const float> rows) {
        logits.insert(logits.end(), rows.begin(), rows.end());
      });
  EXPECT_TRUE(status.ok()) << status;
  return logits;
}

std::vector<float> EncoderLogits(const std::string& directory) {
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto loaded = LoadEncoderDirectory(*backend, directory);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return {};
  const EncoderInputs inputs = {.batch = 1,
                                .length = 5,
                                .ids = {3, 1, 4, 1, 5},
                                .types = {0, 0, 0, 1, 1},
                                .mask = {1, 1, 1, 1, 1}};
  std::vector<float> logits;
  const absl::Status status = EncoderForward(
      *backend, *loaded->model, inputs,
      [&](std::span<const float> rows) { logits.insert(logits.end(), rows.begin(), rows.end()); });
  EXPECT_TRUE(status.ok()) << status;
  return logits;
}

TEST_F(ExportTest, GoldenModelsGiveTheSameLogitsBitForBit) {
  const std::string decoder = std::string(HIPPODROME_TESTDATA) + "/h3_golden";
  Convert("model", {.source = decoder});
  ASSERT_TRUE(Export("model", ExportFormat::kTorch, "model.pt").ok());
  Convert("again", {.source = directory_.File("model.pt"), .config = decoder + "/config.json"});
  const std::vector<float> logits = DecoderLogits(decoder);
  EXPECT_FALSE(logits.empty());
  EXPECT_EQ(DecoderLogits(directory_.File("again")), logits);
  for (const std::string name : {"masked_lm", "classifier"}) {
    const std::string encoder = std::string(HIPPODROME_TESTDATA) + "/bigs_golden/" + name;
    const std::vector<float> expected = EncoderLogits(encoder);
    EXPECT_FALSE(expected.empty());
    Convert("encoder", {.source = encoder});
    for (const ExportFormat format : {ExportFormat::kHuggingFace, ExportFormat::kFlax}) {
      fs::remove_all(directory_.File("exported"));
      ASSERT_TRUE(Export("encoder", format, "exported").ok());
      Convert("again", {.source = directory_.File("exported")});
      EXPECT_EQ(EncoderLogits(directory_.File("again")), expected) << Name(format);
    }
  }
}

std::vector<std::string> Names(const CheckpointSource& source) {
  std::vector<std::string> names;
  for (const SourceTensor& tensor : source.tensors()) names.push_back(tensor.name);
  std::ranges::sort(names);
  return names;
}

// The builders of bigs_files.h name tensors as the published files do.
TEST_F(ExportTest, EncodersHaveThePublishedNames) {
  const ModelFile model = RandomBigs(SmallBigs());
  Convert("model", {.source = WriteModelFile(model)});
  for (const auto& [format, name, expected] :
       {std::tuple(ExportFormat::kHuggingFace, "pytorch_model.bin", BigsZipFile(model)),
        std::tuple(ExportFormat::kFlax, "flax_model.msgpack", BigsFlaxFile(model))}) {
    ASSERT_TRUE(Export("model", format, "exported").ok());
    const auto written = OpenCheckpoint(directory_.File("exported/") + name);
    ASSERT_TRUE(written.ok()) << Message(written.status());
    const auto published = OpenCheckpoint(directory_.Write(name, expected));
    ASSERT_TRUE(published.ok()) << Message(published.status());
    EXPECT_EQ(Names(**written), Names(**published));
  }
}

TEST_F(ExportTest, ModelsWithoutAHeadHaveNoPrefix) {
  BigsConfig config = SmallBigs();
  config.head = EncoderHead::kNone;
  Convert("model", {.source = WriteModelFile(RandomBigs(config)),
                    .config = directory_.Write("config.json", ToJson(config))});
  ASSERT_TRUE(Export("model", ExportFormat::kHuggingFace, "exported").ok());
  const auto source = OpenCheckpoint(directory_.File("exported"));
  ASSERT_TRUE(source.ok());
  for (const std::string& name : Names(**source)) {
    EXPECT_FALSE(name.starts_with("bigs.")) << name;
  }
}

TEST_F(ExportTest, TheSameModelGivesTheSameFile) {
  Convert("model", {.source = kData + "weights.pt"});
  ASSERT_TRUE(Export("model", ExportFormat::kTorch, "a.pt").ok());
  ASSERT_TRUE(Export("model", ExportFormat::kTorch, "b.pt").ok());
  EXPECT_TRUE(FileContent(directory_.File("a.pt")) == FileContent(directory_.File("b.pt")));
}

TEST_F(ExportTest, FormatsOfTheOtherFamilyAreRefused) {
  Convert("decoder", {.source = kData + "weights.pt"});
  Convert("encoder", {.source = WriteModelFile(RandomBigs(SmallBigs()))});
  EXPECT_EQ(Error("decoder", ExportFormat::kFlax),
            directory_.File("decoder") + ": --format is flax; expected torch for an H3 model");
  EXPECT_THAT(Error("encoder", ExportFormat::kTorch),
              HasSubstr("--format is torch; expected huggingface or flax for a BiGS model"));
}

TEST_F(ExportTest, IntegersAreRefused) {
  Convert("model", {.source = kData + "weights.pt", .matrix_dtype = DType::kI4});
  EXPECT_THAT(Error("model", ExportFormat::kTorch),
              AllOf(StartsWith(directory_.File("model/model.safetensors: tensor \"backbone.")),
                    HasSubstr("weights, expected f32 or bf16")));
}

TEST_F(ExportTest, ModelsThatWereNotPublishedAreRefused) {
  Convert("model", {.source = kData + "weights.pt"});
  nlohmann::json config = nlohmann::json::parse(FileContent(directory_.File("model/config.json")));
  config["mixer"] = "s4d";
  directory_.Write("model/config.json", config.dump());
  EXPECT_THAT(Error("model", ExportFormat::kTorch), HasSubstr("its mixer is s4d; expected h3"));
  BigsConfig stack = SmallBigs();
  stack.block = EncoderBlock::kStack;
  Convert("encoder", {.source = WriteModelFile(RandomBigs(stack)),
                      .config = directory_.Write("config.json", ToJson(stack))});
  EXPECT_THAT(Error("encoder", ExportFormat::kFlax), HasSubstr("expected gated blocks"));
}

TEST_F(ExportTest, DamagedModelsAreRefused) {
  EXPECT_THAT(Error("none", ExportFormat::kTorch), StartsWith(directory_.File("none")));
  Convert("model", {.source = kData + "weights.pt"});
  fs::copy_file(WriteModelFile(RandomBigs(SmallBigs())), directory_.File("model/model.safetensors"),
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(Error("model", ExportFormat::kTorch), HasSubstr("' is missing; expected shape"));
  ModelFile untied = GoldenModel();
  untied["lm_head.weight"].values[0] += 1;
  fs::copy_file(WriteModelFile(untied), directory_.File("model/model.safetensors"),
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(Error("model", ExportFormat::kTorch),
              HasSubstr("'lm_head.weight' differs from the embedding; expected a copy of it"));
}

}  // namespace
}  // namespace hippodrome::export_test
