// Storages: the persistent ids of a torch.save pickle.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_STORAGE_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_STORAGE_H_

#include "absl/status/statusor.h"
#include "tools/convert/torch/pickle.h"
#include "tools/convert/torch/torch_state_dict.h"

namespace hippodrome {

// Reads ('storage', torch.XStorage, key, device, elements[, None]). `node` is a kPersistent.
absl::StatusOr<TorchStorage> ReadTorchStorage(const Pickle& pickle, const PickleNode& node);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_STORAGE_H_
