// The small golden model in memory, to be changed and written as a source for conversion.
#ifndef HIPPODROME_TESTS_TOOLS_CONVERT_MODEL_FILE_H_
#define HIPPODROME_TESTS_TOOLS_CONVERT_MODEL_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/tools/convert/torch_builder.h"

namespace hippodrome {

struct ModelTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

using ModelFile = std::map<std::string, ModelTensor>;

// Every tensor of a safetensors file, as f32.
ModelFile ReadModelFile(const std::string& path);
// The golden weights under the published names, head included.
ModelFile GoldenModel();

// Writes `model` as F32 to a temporary .safetensors file and gives its path.
std::string WriteModelFile(const ModelFile& model, const std::string& name = "model.safetensors");

// A piece of pickle: the dict of the tensors of `model`, each in a storage of its own, which are
// added to `storages` in the same order, as F32.
std::string StateDict(const ModelFile& model, std::vector<StorageBytes>& storages,
                      const std::string& storage_type = "FloatStorage");

// Layer 0 with mixer.Wqkv and mixer.out_proj in place of its four projections.
void JoinProjections(ModelFile& model);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TOOLS_CONVERT_MODEL_FILE_H_
