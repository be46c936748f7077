#include "tools/convert/torch/torch_writer.h"

#include <cstddef>
#include <map>

#include "engine/base/status.h"
#include "tools/convert/torch/pickle_writer.h"
#include "tools/convert/torch/torch_state_dict.h"
#include "tools/convert/torch/zip_writer.h"

namespace hippodrome {
namespace {

constexpr char kTop[] = "archive/";

// The storages of a file in their order; keys are their places.
struct Storages {
  std::vector<const TensorView*> views;
  std::map<const std::byte*, size_t> places;  // by the first byte

  size_t Add(const TensorView& tensor) {
    const auto [place, inserted] = places.try_emplace(tensor.data.data(), views.size());
    if (inserted) views.push_back(&tensor);
    return place->second;
  }
};

std::string PickleStateDict(const std::vector<TensorView>& tensors, Storages& storages) {
  std::vector<std::string> items;
  for (const TensorView& tensor : tensors) {
    const std::string key = std::to_string(storages.Add(tensor));
    const std::string storage =
        pickled::Storage(TorchStorageType(tensor.dtype), key, tensor.elements());
    items.push_back(pickled::Text(tensor.name));
    items.push_back(pickled::Tensor(storage, 0, tensor.shape, RowMajorStrides(tensor.shape)));
  }
  return pickled::Whole(pickled::Dict(items));
}

}  // namespace

absl::Status WriteTorchFile(const std::string& path, const std::vector<TensorView>& tensors,
                            const TensorWritten& written) {
  const std::string top = kTop;
  Storages storages;
  const std::string pickle = PickleStateDict(tensors, storages);
  HIPPODROME_ASSIGN_OR_RETURN(const auto zip, ZipWriter::Create(path));
  HIPPODROME_RETURN_IF_ERROR(zip->Add(top + "data.pkl", pickle));
  HIPPODROME_RETURN_IF_ERROR(zip->Add(top + "byteorder", "little"));
  for (size_t i = 0; i < storages.views.size(); ++i) {
    const TensorView& tensor = *storages.views[i];
    HIPPODROME_RETURN_IF_ERROR(zip->Add(top + "data/" + std::to_string(i), tensor.data));
    written(tensor);
  }
  HIPPODROME_RETURN_IF_ERROR(zip->Add(top + "version", "3\n"));
  return zip->Finish();
}

}  // namespace hippodrome
