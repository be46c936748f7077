#include "tests/tools/convert/bigs_files.h"

#include <random>

#include "tests/tools/convert/msgpack_builder.h"
#include "tests/tools/convert/torch_builder.h"
#include "tools/convert/models/bigs_shapes.h"
#include "tools/convert/torch/torch_state_dict.h"

namespace hippodrome {
namespace {

struct TorchFile {
  std::string pickle;
  std::vector<StorageBytes> storages;
};

TorchFile MakeTorchFile(const ModelFile& model) {
  using pickled::Storage, pickled::Tensor, pickled::Text;
  TorchFile file;
  std::vector<std::string> items;
  const auto add = [&](const std::string& name, const ModelTensor& tensor, const std::string& key) {
    const auto count = static_cast<int64_t>(tensor.values.size());
    items.push_back(Text(name));
    items.push_back(Tensor(Storage("FloatStorage", key, count), 0, tensor.shape,
                           RowMajorStrides(tensor.shape)));
  };
  for (const auto& [name, tensor] : model) {
    const std::string key = std::to_string(file.storages.size());
    add(name, tensor, key);
    file.storages.push_back({key, Bytes(tensor.values), tensor.values.size()});
    if (name == kBigsWords && model.contains("cls.predictions.bias")) {
      add(kBigsDecoder, tensor, key);
    }
    if (name == "cls.predictions.bias") add("cls.predictions.decoder.bias", tensor, key);
  }
  items.push_back(Text("bigs.embeddings.position_ids"));
  items.push_back(Tensor(Storage("LongStorage", "ids", 2), 0, {1, 2}, {2, 1}));
  file.storages.push_back({"ids", std::string(16, '\0'), 2});
  file.pickle = pickled::Whole(pickled::Dict(items));
  return file;
}

ModelTensor Transposed(const ModelTensor& tensor) {
  ModelTensor result{{tensor.shape[1], tensor.shape[0]}, {}};
  for (int64_t j = 0; j < tensor.shape[1]; ++j) {
    for (int64_t i = 0; i < tensor.shape[0]; ++i) {
      result.values.push_back(tensor.values[i * tensor.shape[1] + j]);
    }
  }
  return result;
}

// What Flax calls the "weight" of a module.
std::string FlaxLeaf(const std::string& name, const ModelTensor& tensor) {
  if (name.find("_embeddings.") != std::string::npos) return "embedding";
  return tensor.shape.size() == 2 ? "kernel" : "scale";
}

}  // namespace

BigsConfig SmallBigs() {
  BigsConfig config;
  config.vocab_size = 23;
  config.hidden_size = 12;
  config.num_hidden_layers = 2;
  config.intermediate_size = 20;
  config.num_ssm = 5;
  config.max_position_embeddings = 17;
  config.type_vocab_size = 3;
  config.pad_to = 17;
  return config;
}

ModelFile RandomBigs(const BigsConfig& config) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  ModelFile model;
  for (const TensorSpec& spec : BigsTensorSpecs(config, DType::kF32, {.pooler = true})) {
    ModelTensor& tensor = model[spec.name];
    tensor.shape = spec.shape;
    int64_t elements = 1;
    for (const int64_t size : spec.shape) elements *= size;
    for (int64_t i = 0; i < elements; ++i) tensor.values.push_back(normal(random));
  }
  return model;
}

std::string BigsZipFile(const ModelFile& model) {
  const TorchFile file = MakeTorchFile(model);
  return ZipFile(file.pickle, file.storages);
}

std::string BigsLegacyFile(const ModelFile& model) {
  const TorchFile file = MakeTorchFile(model);
  return LegacyFile(file.pickle, file.storages);
}

std::string BigsFlaxFile(const ModelFile& model, const std::string& prefix) {
  std::map<std::string, std::string> arrays;
  for (const auto& [name, tensor] : model) {
    std::string path = name;
    if (path.starts_with("bigs.")) path.replace(0, 4, prefix);
    if (const size_t kernel = path.find("s4.kernel."); kernel != std::string::npos) {
      path.erase(kernel + 2, 7);
    }
    ModelTensor stored = tensor;
    if (path.ends_with(".weight")) {
      const std::string leaf = FlaxLeaf(name, tensor);
      path.replace(path.size() - 6, 6, leaf);
      if (leaf == "kernel") stored = Transposed(tensor);
    }
    for (char& c : path) {
      if (c == '.') c = '/';
    }
    arrays[path] = msgpack::FlaxArray(stored.shape, "float32", Bytes(stored.values));
  }
  return msgpack::Tree(arrays);
}

}  // namespace hippodrome
