// What the pickle of a torch.save file says about its tensors.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_STATE_DICT_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_STATE_DICT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "tools/convert/torch/pickle.h"

namespace hippodrome {

// Elements of one kind under one key; tensors are views of it.
struct TorchStorage {
  std::string key;
  std::string type;            // "FloatStorage", ..
  std::optional<DType> dtype;  // none for types that no weight has (bool, complex, ..)
  uint64_t element_size = 0;   // bytes
  uint64_t elements = 0;

  // elements * element_size does not overflow.
  uint64_t bytes() const { return elements * element_size; }
};

// The type of storages of these elements, "FloatStorage". REQUIRES: floats, I64, I32 or U8.
std::string TorchStorageType(DType dtype);

// A strided view: element (i0, i1, ..) is storage[offset + sum_k i_k strides[k]].
struct TorchTensor {
  std::string name;
  TorchStorage storage;
  uint64_t offset = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;

  // Product of the shape; does not overflow.
  uint64_t elements() const;
  bool contiguous() const;
};

// The strides of a contiguous tensor.
std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& shape);

struct TorchStateDict {
  bool lightning = false;            // names are as in the file, prefix "model." included
  std::vector<TorchTensor> tensors;  // in the order of the file
};

// Reads a state_dict (an OrderedDict or dict of tensors), also one inside a Lightning checkpoint or
// inside dicts under the keys "state_dict" and "model", where what lies beside it is ignored.
// Every tensor lies inside its storage; strides and sizes are not negative; names are unique.
// Values that are not tensors are an error, except that a Lightning checkpoint may have plain
// values under names without the prefix "model.". Errors: kInvalidArgument naming the tensor.
absl::StatusOr<TorchStateDict> ReadTorchStateDict(const Pickle& pickle);

// Every storage that the pickle mentions, by key. Errors: kInvalidArgument for a malformed one, or
// when two mentions of a key disagree.
absl::StatusOr<std::map<std::string, TorchStorage>> ListTorchStorages(const Pickle& pickle);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_STATE_DICT_H_
