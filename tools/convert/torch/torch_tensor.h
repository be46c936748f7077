// One tensor of a torch.save pickle.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_TENSOR_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_TENSOR_H_

#include "absl/status/statusor.h"
#include "tools/convert/torch/pickle.h"
#include "tools/convert/torch/torch_state_dict.h"

namespace hippodrome {

// True for a call of torch._utils._rebuild_tensor_v2 or _rebuild_parameter.
bool IsTorchTensor(const Pickle& pickle, const PickleNode& node);

// Reads such a call, without the name. The view lies inside its storage.
absl::StatusOr<TorchTensor> ReadTorchTensor(const Pickle& pickle, const PickleNode& node);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_TENSOR_H_
