#include "tests/tools/convert/model_file.h"

#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/convert/torch/torch_state_dict.h"

namespace hippodrome {

ModelFile ReadModelFile(const std::string& path) {
  ModelFile model;
  const auto file = SafetensorsFile::Open(path);
  EXPECT_TRUE(file.ok()) << Message(file.status());
  if (!file.ok()) return model;
  for (const auto& [name, view] : (*file)->tensors()) {
    model[name] = {view.shape, ToFloats(view).value()};
  }
  return model;
}

ModelFile GoldenModel() {
  return ReadModelFile(std::string(HIPPODROME_TESTDATA) + "/convert/weights.safetensors");
}

std::string WriteModelFile(const ModelFile& model, const std::string& name) {
  const std::string path = WriteTemporary(name, "");
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : model) specs.push_back({name, DType::kF32, tensor.shape});
  const auto writer = SafetensorsWriter::Create(path, specs);
  EXPECT_TRUE(writer.ok()) << Message(writer.status());
  for (const auto& [name, tensor] : model) {
    EXPECT_TRUE((*writer)->Append(std::as_bytes(std::span(tensor.values))).ok());
  }
  EXPECT_TRUE((*writer)->Finish().ok());
  return path;
}

std::string StateDict(const ModelFile& model, std::vector<StorageBytes>& storages,
                      const std::string& storage_type) {
  std::vector<std::string> items;
  for (const auto& [name, tensor] : model) {
    const std::string key = std::to_string(storages.size());
    const uint64_t count = tensor.values.size();
    items.push_back(pickled::Text(name));
    items.push_back(
        pickled::Tensor(pickled::Storage(storage_type, key, static_cast<int64_t>(count)), 0,
                        tensor.shape, RowMajorStrides(tensor.shape)));
    storages.push_back({key, Bytes(tensor.values), count});
  }
  return pickled::Dict(items);
}

void JoinProjections(ModelFile& model) {
  const std::string mixer = "backbone.layers.0.mixer.";
  for (const std::string leaf : {".weight", ".bias"}) {
    ModelTensor joined;
    for (const std::string part : {"q_proj", "k_proj", "v_proj"}) {
      const ModelTensor tensor = model.extract(mixer + part + leaf).mapped();
      joined.values.insert(joined.values.end(), tensor.values.begin(), tensor.values.end());
      joined.shape = tensor.shape;
    }
    joined.shape[0] *= 3;
    model[mixer + "Wqkv" + leaf] = joined;
    model[mixer + "out_proj" + leaf] = model.extract(mixer + "output_linear" + leaf).mapped();
  }
}

}  // namespace hippodrome
