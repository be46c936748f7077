// Whatever is around the tensors of a checkpoint, the model is the same, byte for byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/config/bigs_config.h"
#include "kernels/dtype.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/convert/bigs_files.h"
#include "tests/tools/convert/convert_fixture.h"
#include "tests/tools/convert/model_file.h"
#include "tests/tools/convert/torch_builder.h"

namespace hippodrome::convert_wrappers_test {
namespace {

namespace fs = std::filesystem;
using pickled::Dict;
using pickled::Text;
using pickled::Whole;
using testing::HasSubstr;

// The files of a model directory.
struct ModelBytes {
  std::string config;
  std::string tensors;
};

class ConvertWrappersTest : public ConvertFixture {
 protected:
  ModelBytes Converted(const ConvertOptions& options) {
    fs::remove_all(out_);
    const absl::Status status = Run(options);
    EXPECT_TRUE(status.ok()) << Message(status);
    if (!status.ok()) return {};
    return {FileContent(out_ + "/config.json"), FileContent(out_ + "/model.safetensors")};
  }
  // Whether `source` becomes what the plain file of `model` does.
  void ExpectSame(const std::string& source, const ModelFile& model = GoldenModel()) {
    const ModelBytes plain =
        Converted({.source = WriteModelFile(model, "plain.safetensors"), .attention_heads = 2});
    const ModelBytes wrapped = Converted({.source = source, .attention_heads = 2});
    EXPECT_EQ(wrapped.config, plain.config);
    EXPECT_TRUE(wrapped.tensors == plain.tensors);
  }
  std::string Directory() const { return directory_.path(); }

  TemporaryDirectory directory_;
};

ModelFile WithPrefix(const std::string& prefix, const ModelFile& model) {
  ModelFile result;
  for (const auto& [name, tensor] : model) result[prefix + name] = tensor;
  return result;
}

// A .pt file with `wrap` around its state_dict.
std::string Wrapped(const std::function<std::string(const std::string&)>& wrap,
                    const ModelFile& model = GoldenModel()) {
  std::vector<StorageBytes> storages;
  const std::string state = StateDict(model, storages);
  return WriteTemporary("wrapped.pt", ZipFile(Whole(wrap(state)), storages));
}

TEST_F(ConvertWrappersTest, DictsAroundTheStateDict) {
  const std::string optimizer = Dict({Text("state"), "}", Text("param_groups"), "]"});
  ExpectSame(Wrapped([](const std::string& state) { return state; }));
  ExpectSame(Wrapped([&](const std::string& state) {
    return Dict({Text("state_dict"), state, Text("optimizer"), optimizer, Text("epoch"), "K\3"});
  }));
  ExpectSame(Wrapped([&](const std::string& state) {
    return Dict({Text("model"), state, Text("optimizer"), optimizer, Text("best"), "N"});
  }));
  ExpectSame(Wrapped([](const std::string& state) {
    return Dict({Text("model"), Dict({Text("state_dict"), state})});
  }));
}

TEST_F(ConvertWrappersTest, PrefixesOfModules) {
  for (const std::string prefix :
       {"module.", "_orig_mod.", "model.", "module._orig_mod.", "_orig_mod.module.",
        "module.module.", "module.model.", "model._orig_mod."}) {
    SCOPED_TRACE(prefix);
    const ModelFile model = WithPrefix(prefix, GoldenModel());
    ExpectSame(WriteModelFile(model));
    ExpectSame(
        Wrapped([](const std::string& state) { return Dict({Text("state_dict"), state}); }, model));
  }
}

TEST_F(ConvertWrappersTest, PrefixesInLightningCheckpoints) {
  for (const std::string prefix : {"model.", "model._orig_mod.", "_orig_mod.model."}) {
    SCOPED_TRACE(prefix);
    ModelFile model = WithPrefix(prefix, GoldenModel());
    model["module.loss.weight"] = {{1}, {1}};  // not the model's
    ExpectSame(Wrapped(
        [](const std::string& state) {
          return Dict({Text("pytorch-lightning_version"), Text("1.8"), Text("state_dict"), state});
        },
        model));
  }
}

TEST_F(ConvertWrappersTest, PrefixesOfEncoders) {
  const ModelFile model = RandomBigs(SmallBigs());
  for (const std::string prefix : {"module.", "_orig_mod.", "model.", "module.model."}) {
    SCOPED_TRACE(prefix);
    const ModelBytes plain = Converted({.source = WriteModelFile(model)});
    const ModelBytes wrapped = Converted({.source = WriteModelFile(WithPrefix(prefix, model))});
    EXPECT_EQ(wrapped.config, plain.config);
    EXPECT_TRUE(wrapped.tensors == plain.tensors);
  }
}

TEST_F(ConvertWrappersTest, PrefixesThatMakeTwoNamesOneAreRefused) {
  ModelFile model = GoldenModel();
  model["module.backbone.ln_f.bias"] = model["backbone.ln_f.bias"];
  EXPECT_THAT(Error({.source = WriteModelFile(model), .attention_heads = 2}),
              HasSubstr("'backbone.ln_f.bias' and 'module.backbone.ln_f.bias' both stand for"));
}

// Positive numbers, the same for tensors of one size.
uint16_t Half(size_t i) { return static_cast<uint16_t>(0x3000 + i % 0x800); }

TEST_F(ConvertWrappersTest, HalfPrecisionGivesItsValues) {
  ModelFile model = GoldenModel();
  std::vector<TensorSpec> specs;
  for (auto& [name, tensor] : model) {
    for (size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] = HalfToFloat(Half(i));
    specs.push_back({name, DType::kF16, tensor.shape});
  }
  std::vector<StorageBytes> storages;
  const std::string state = StateDict(model, storages, "HalfStorage");
  const auto writer = SafetensorsWriter::Create(directory_.File("half.safetensors"), specs).value();
  for (StorageBytes& storage : storages) {
    std::vector<uint16_t> halves(storage.elements);
    for (size_t i = 0; i < halves.size(); ++i) halves[i] = Half(i);
    storage.bytes.assign(reinterpret_cast<const char*>(halves.data()), 2 * halves.size());
    ASSERT_TRUE(writer->Append(std::as_bytes(std::span(halves))).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  ExpectSame(WriteTemporary("half.pt", ZipFile(Whole(state), storages)), model);
  ExpectSame(directory_.File("half.safetensors"), model);
}

// A directory of Hugging Face with the file `name`, a config and a tokenizer.
TEST_F(ConvertWrappersTest, DirectoriesOfHuggingFace) {
  BigsConfig config = SmallBigs();
  config.layer_gelu = Epilogue::Activation::kGeluTanh;
  const ModelFile model = RandomBigs(config);
  const std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  directory_.Write("config.json", ToJson(config));
  const ModelBytes plain =
      Converted({.source = WriteModelFile(model), .config = directory_.File("config.json")});
  const std::string safetensors = FileContent(WriteModelFile(model));
  for (const auto& [name, bytes] :
       std::vector<std::pair<std::string, std::string>>{{"model.safetensors", safetensors},
                                                        {"pytorch_model.bin", BigsZipFile(model)},
                                                        {"flax_model.msgpack", BigsFlaxFile(model)},
                                                        {"model.pt", BigsLegacyFile(model)}}) {
    SCOPED_TRACE(name);
    directory_.Write(name, bytes);
    directory_.Write("vocab.txt", words);
    const ModelBytes converted = Converted({.source = Directory()});
    EXPECT_EQ(converted.config, plain.config);
    EXPECT_TRUE(converted.tensors == plain.tensors);
    EXPECT_EQ(FileContent(out_ + "/vocab.txt"), words);
    fs::remove(directory_.File("vocab.txt"));
    Converted({.source = Directory()});
    EXPECT_FALSE(fs::exists(out_ + "/vocab.txt"));
    fs::remove(directory_.File(name));
  }
  fs::remove_all(out_);
  EXPECT_THAT(Error({.source = Directory()}),
              HasSubstr(Directory() + ": has no checkpoint; expected model.safetensors"));
}

TEST_F(ConvertWrappersTest, TheFirstFormOfADirectoryIsTaken) {
  const ModelFile model = RandomBigs(SmallBigs());
  directory_.Write("pytorch_model.bin", "no checkpoint");
  directory_.Write("model.safetensors", FileContent(WriteModelFile(model)));
  EXPECT_EQ(Error({.source = Directory()}), "OK");
  fs::remove(directory_.File("model.safetensors"));
  fs::remove_all(out_);
  EXPECT_THAT(Error({.source = Directory()}), HasSubstr("pytorch_model.bin: is not a checkpoint"));
}

// Writes every other tensor of `model` into each of two shards, and their index.
void WriteShards(TemporaryDirectory& directory, const std::string& stem, const std::string& ending,
                 const ModelFile& model,
                 const std::function<std::string(const ModelFile&)>& file_of) {
  const std::string names[] = {stem + "-00001-of-00002." + ending,
                               stem + "-00002-of-00002." + ending};
  ModelFile shards[2];
  nlohmann::json map;
  size_t next = 0;
  for (const auto& [name, tensor] : model) {
    const size_t shard = next++ % 2;
    shards[shard][name] = tensor;
    map[name] = names[shard];
  }
  for (const size_t shard : {0, 1}) directory.Write(names[shard], file_of(shards[shard]));
  directory.Write(stem + "." + ending + ".index.json",
                  nlohmann::json({{"metadata", {{"total_size", 1}}}, {"weight_map", map}}).dump());
}

std::string TorchFileOf(const ModelFile& model) {
  std::vector<StorageBytes> storages;
  const std::string state = StateDict(model, storages);
  return ZipFile(Whole(state), storages);
}

TEST_F(ConvertWrappersTest, Shards) {
  WriteShards(directory_, "pytorch_model", "bin", GoldenModel(), TorchFileOf);
  ExpectSame(Directory());
  ExpectSame(directory_.File("pytorch_model.bin.index.json"));
  WriteShards(directory_, "model", "safetensors", GoldenModel(),
              [](const ModelFile& model) { return FileContent(WriteModelFile(model)); });
  ExpectSame(Directory());
  // With prefixes in the index as in the files.
  WriteShards(directory_, "model", "safetensors", WithPrefix("module.", GoldenModel()),
              [](const ModelFile& model) { return FileContent(WriteModelFile(model)); });
  ExpectSame(Directory());
}

}  // namespace
}  // namespace hippodrome::convert_wrappers_test
