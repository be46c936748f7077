// A state_dict as torch.save writes it.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_WRITER_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_WRITER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome {

// Called when the data of a tensor are written, and not needed again.
using TensorWritten = std::function<void(const TensorView&)>;

// Writes the OrderedDict of `tensors`, in their order, in the zip format of PyTorch 1.6 and later.
// Those with the same data share a storage: tied weights. REQUIRES: floats or I64. Errors: those
// of PartialFile.
absl::Status WriteTorchFile(const std::string& path, const std::vector<TensorView>& tensors,
                            const TensorWritten& written);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_WRITER_H_
