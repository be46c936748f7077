#include "engine/model_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_matrix.h"
#include "engine/passes/forward.h"
#include "kernels/make_backend.h"
#include "kernels/quantized_group.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::model_directory_test {
namespace {

using testing::HasSubstr;

const std::string kGolden = std::string(HIPPODROME_TESTDATA) + "/h3_golden";
const std::string kEncoder = std::string(HIPPODROME_TESTDATA) + "/bigs_golden/classifier";

struct NamedTensor {
  TensorSpec spec;
  std::vector<std::byte> data;
};
using Tensors = std::map<std::string, NamedTensor>;

// The golden model's tensors, changed by `change`, with its configuration.
void WriteModel(const std::string& directory, const std::function<void(Tensors&)>& change) {
  std::filesystem::copy_file(kGolden + "/config.json", directory + "/config.json");
  const auto golden = *SafetensorsFile::Open(kGolden + "/model.safetensors");
  Tensors tensors;
  for (const auto& [name, view] : golden->tensors()) {
    tensors[name] = {{name, view.dtype, view.shape}, {view.data.begin(), view.data.end()}};
  }
  change(tensors);
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : tensors) specs.push_back(tensor.spec);
  const auto writer = *SafetensorsWriter::Create(directory + "/model.safetensors", specs);
  for (const auto& [name, tensor] : tensors) ASSERT_TRUE(writer->Append(tensor.data).ok());
  ASSERT_TRUE(writer->Finish().ok());
}

bool IsMatrix(const TensorSpec& spec) {
  return spec.shape.size() == 2 && spec.name.ends_with(".weight");
}

std::vector<float> Floats(const NamedTensor& tensor) {
  return *ToFloats({tensor.spec.name, tensor.spec.dtype, tensor.spec.shape, tensor.data});
}

std::vector<std::byte> Bytes(const auto& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Replaces the matrices by integers and scales.
void Quantize(Tensors& tensors, DType weights) {
  Tensors stored;
  for (const auto& [name, tensor] : tensors) {
    if (!IsMatrix(tensor.spec)) {
      stored[name] = tensor;
      continue;
    }
    const bool embedding = name.find("word_embeddings") != std::string::npos;
    const DType type = embedding ? EmbeddingType(weights) : weights;
    const std::vector<TensorSpec> specs = StoredSpecs({name, type, tensor.spec.shape});
    const QuantizedRows rows = QuantizeRows(Floats(tensor), tensor.spec.shape[1], type);
    stored[name] = {specs[0], rows.values};
    stored[specs[1].name] = {specs[1], Bytes(rows.scales)};
  }
  tensors = stored;
}

// Replaces the matrices by the values of such integers.
void Round(Tensors& tensors, DType weights) {
  Tensors quantized = tensors;
  Quantize(quantized, weights);
  for (auto& [name, tensor] : tensors) {
    if (!IsMatrix(tensor.spec)) continue;
    const NamedTensor& integers = quantized[name];
    std::vector<BF16> scales(quantized[name + "_scale"].data.size() / sizeof(BF16));
    std::memcpy(scales.data(), quantized[name + "_scale"].data.data(),
                scales.size() * sizeof(BF16));
    const DType type = integers.spec.dtype == DType::kU8 ? DType::kI4 : DType::kI8;
    tensor.data = Bytes(*Dequantize({.rows = tensor.spec.shape[0],
                                     .cols = tensor.spec.shape[1],
                                     .dtype = type,
                                     .values = {name, integers.spec.dtype, {}, integers.data},
                                     .scale = {},
                                     .scales = scales}));
    tensor.spec.dtype = DType::kF32;
  }
}

class ModelDirectoryTest : public testing::Test {
 protected:
  std::string Error(const std::function<void(Tensors&)>& change) {
    const TemporaryDirectory directory;
    WriteModel(directory.path(), change);
    const auto loaded = LoadDecoderDirectory(*backend_, directory.path());
    return loaded.ok() ? "loaded" : Message(loaded.status());
  }

  // The logits of a model in a directory.
  std::vector<float> Logits(const std::string& directory, std::optional<DType> weights) {
    const auto loaded = LoadDecoderDirectory(*backend_, directory, weights);
    if (!loaded.ok()) {
      ADD_FAILURE() << loaded.status();
      return {};
    }
    std::vector<float> logits;
    const std::vector<int32_t> ids = {1, 5, 9, 2, 59};
    EXPECT_TRUE(Forward(*backend_, *loaded->model, ids, {}, [&](int64_t, auto rows) {
                  logits.insert(logits.end(), rows.begin(), rows.end());
                }).ok());
    return logits;
  }

  std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 1});
};

class QuantizedDirectoryTest : public ModelDirectoryTest,
                               public testing::WithParamInterface<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, QuantizedDirectoryTest, testing::Values(DType::kI8, DType::kI4));

TEST_P(QuantizedDirectoryTest, GivesTheBitsOfRoundingAtLoad) {
  const TemporaryDirectory directory;
  WriteModel(directory.path(), [](Tensors& tensors) { Quantize(tensors, GetParam()); });
  EXPECT_EQ(LoadDecoderDirectory(*backend_, directory.path())->weights, GetParam());
  const std::vector<float> rounded = Logits(kGolden, GetParam());
  EXPECT_EQ(Logits(directory.path(), std::nullopt), rounded);
  EXPECT_EQ(Logits(directory.path(), GetParam()), rounded);
}

TEST_P(QuantizedDirectoryTest, OtherTypesTakeTheValuesOfItsIntegers) {
  const TemporaryDirectory integers, floats;
  WriteModel(integers.path(), [](Tensors& tensors) { Quantize(tensors, GetParam()); });
  WriteModel(floats.path(), [](Tensors& tensors) { Round(tensors, GetParam()); });
  for (const DType weights : kWeightTypes) {
    const std::vector<float> logits = Logits(integers.path(), weights);
    if (IsQuantized(weights)) continue;  // those round once more
    EXPECT_EQ(logits, Logits(floats.path(), weights));
  }
}

TEST_P(QuantizedDirectoryTest, HasTheParametersOfTheOriginalAndCanBeRefused) {
  const TemporaryDirectory directory;
  WriteModel(directory.path(), [](Tensors& tensors) { Quantize(tensors, GetParam()); });
  const auto file = *SafetensorsFile::Open(directory.File("model.safetensors"));
  const auto original = *SafetensorsFile::Open(kGolden + "/model.safetensors");
  EXPECT_EQ(CountParameters(*file), CountParameters(*original));
  EXPECT_TRUE(RefuseIntegers(*original).ok());
  EXPECT_EQ(
      Message(RefuseIntegers(*file)),
      directory.File("model.safetensors") +
          ": tensor \"backbone.embeddings.word_embeddings.weight\" has int8 weights, expected "
          "f32 or bf16");
}

TEST_P(QuantizedDirectoryTest, NamesTheTensorAtFault) {
  const std::string fc1 = "backbone.layers.2.mlp.fc1.weight";
  const auto error = [&](const std::function<void(Tensors&)>& change) {
    return Error([&](Tensors& tensors) {
      Quantize(tensors, GetParam());
      change(tensors);
    });
  };
  EXPECT_EQ(error([](Tensors&) {}), "loaded");
  EXPECT_THAT(error([&](Tensors& t) { t.erase(fc1 + "_scale"); }), HasSubstr(fc1 + "_scale"));
  EXPECT_THAT(error([&](Tensors& t) { std::swap(t[fc1].spec.shape[0], t[fc1].spec.shape[1]); }),
              testing::AllOf(HasSubstr(fc1), HasSubstr("expected [")));
  EXPECT_THAT(error([&](Tensors& t) {
                std::vector<int64_t>& shape = t[fc1 + "_scale"].spec.shape;
                shape = {shape[0] * shape[1]};
              }),
              testing::AllOf(HasSubstr(fc1 + "_scale"), HasSubstr("expected [")));
  EXPECT_THAT(error([&](Tensors& t) { t[fc1 + "_scale"].spec.dtype = DType::kF16; }),
              HasSubstr(fc1 + "_scale\" is F16, expected BF16"));
  EXPECT_THAT(error([&](Tensors& t) {
                const BF16 infinite = ToBF16(INFINITY);
                std::memcpy(t[fc1 + "_scale"].data.data() + 2, &infinite, sizeof(infinite));
              }),
              testing::AllOf(HasSubstr(fc1 + "_scale"), HasSubstr("element 1")));
}

TEST_F(ModelDirectoryTest, LoadsAModelWithoutTokenizer) {
  const auto loaded = LoadDecoderDirectory(*backend_, kGolden);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->tokenizer, nullptr);
  EXPECT_EQ(loaded->weights, DType::kF32);
  EXPECT_EQ(loaded->model->config().n_layer, 3);
}

TEST_F(ModelDirectoryTest, TakesTheWeightsDtypeAskedFor) {
  for (const DType weights : kWeightTypes) {
    const auto loaded = LoadDecoderDirectory(*backend_, kGolden, weights);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->weights, weights);
  }
}

TEST_F(ModelDirectoryTest, ReportsProgressByLayer) {
  std::vector<int64_t> done;
  ASSERT_TRUE(LoadDecoderDirectory(*backend_, kGolden, std::nullopt, [&](int64_t n, int64_t total) {
                EXPECT_EQ(total, 3);
                done.push_back(n);
              }).ok());
  EXPECT_THAT(done, testing::ElementsAre(1, 2, 3));
}

TEST_F(ModelDirectoryTest, NamesTheMissingFile) {
  const TemporaryDirectory directory;
  EXPECT_THAT(Message(LoadDecoderDirectory(*backend_, directory.path()).status()),
              HasSubstr("config.json"));
  std::filesystem::copy_file(kGolden + "/config.json", directory.path() + "/config.json");
  EXPECT_THAT(Message(LoadDecoderDirectory(*backend_, directory.path()).status()),
              HasSubstr("model.safetensors"));
}

TEST_F(ModelDirectoryTest, NamesTheTensorAtFault) {
  const std::string log_dt = "backbone.layers.0.mixer.kernel.kernel.log_dt";
  const std::string fc1 = "backbone.layers.2.mlp.fc1.weight";
  EXPECT_EQ(Error([](Tensors&) {}), "loaded");
  EXPECT_THAT(Error([&](Tensors& t) { t.erase(log_dt); }), HasSubstr(log_dt));
  EXPECT_THAT(Error([&](Tensors& t) { t.erase("backbone.embeddings.word_embeddings.weight"); }),
              HasSubstr("word_embeddings"));
  EXPECT_THAT(Error([&](Tensors& t) { std::swap(t[fc1].spec.shape[0], t[fc1].spec.shape[1]); }),
              HasSubstr(fc1));
  EXPECT_THAT(Error([&](Tensors& t) { t[log_dt].spec.dtype = DType::kI32; }), HasSubstr(log_dt));
  EXPECT_THAT(Error([&](Tensors& t) { t[fc1].spec.dtype = DType::kI32; }), HasSubstr(fc1));
  EXPECT_THAT(Error([&](Tensors& t) {
                const float nan = NAN;
                std::memcpy(t[log_dt].data.data() + 8, &nan, sizeof(nan));
              }),
              testing::AllOf(HasSubstr(log_dt), HasSubstr("element 2")));
}

TEST_F(ModelDirectoryTest, RefusesATokenizerThatIsLargerThanTheModel) {
  const TemporaryDirectory directory;
  WriteModel(directory.path(), [](Tensors&) {});
  const std::string tokenizer = std::string(HIPPODROME_TESTDATA) + "/tokenizer";
  for (const char* file : {"/vocab.json", "/merges.txt"}) {
    std::filesystem::copy_file(tokenizer + file, directory.path() + file);
  }
  EXPECT_THAT(Message(LoadDecoderDirectory(*backend_, directory.path()).status()),
              testing::AllOf(HasSubstr("2048"), HasSubstr("60")));
}

TEST_F(ModelDirectoryTest, LoadsAnEncoderWithItsTokenizer) {
  const auto loaded = LoadEncoderDirectory(*backend_, kEncoder);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->weights, DType::kF32);
  EXPECT_EQ(loaded->model->config().num_hidden_layers, 2);
  ASSERT_NE(loaded->tokenizer, nullptr);
  EXPECT_LE(loaded->tokenizer->vocab_size(), 211);
  for (const DType weights : kWeightTypes) {
    const auto as = LoadEncoderDirectory(*backend_, kEncoder, weights);
    ASSERT_TRUE(as.ok()) << as.status();
    EXPECT_EQ(as->weights, weights);
  }
}

TEST_F(ModelDirectoryTest, NamesWhatAnEncoderLacks) {
  const TemporaryDirectory directory;
  const auto error = [&] {
    return Message(LoadEncoderDirectory(*backend_, directory.path()).status());
  };
  EXPECT_THAT(error(), HasSubstr("config.json"));
  std::filesystem::copy_file(kEncoder + "/config.json", directory.File("config.json"));
  EXPECT_THAT(error(), HasSubstr("model.safetensors"));
  std::filesystem::copy_file(kGolden + "/model.safetensors", directory.File("model.safetensors"));
  EXPECT_THAT(error(), HasSubstr("bigs.embeddings.word_embeddings.weight"));
}

TEST_F(ModelDirectoryTest, AnEncoderNeedsNoTokenizerButNoneThatIsLarger) {
  const TemporaryDirectory directory;
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(kEncoder + "/" + file, directory.File(file));
  }
  const auto loaded = LoadEncoderDirectory(*backend_, directory.path());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->tokenizer, nullptr);
  std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 5; i < 212; ++i) vocab += "w" + std::to_string(i) + "\n";
  directory.Write("vocab.txt", vocab);
  EXPECT_THAT(Message(LoadEncoderDirectory(*backend_, directory.path()).status()),
              testing::AllOf(HasSubstr("vocab.txt"), HasSubstr("212"), HasSubstr("211")));
}

}  // namespace
}  // namespace hippodrome::model_directory_test
