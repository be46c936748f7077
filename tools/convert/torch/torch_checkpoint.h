// A torch.save file of either container: its tensors over its storages.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_CHECKPOINT_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_CHECKPOINT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/convert/checkpoint_source.h"
#include "tools/convert/strided_reader.h"
#include "tools/convert/torch/storage_reader.h"
#include "tools/convert/torch/torch_state_dict.h"

namespace hippodrome {

class TorchCheckpoint : public CheckpointSource {
 public:
  // Errors: kInvalidArgument for a tensor whose storage is missing from the file or of another size
  // than the pickle says.
  static absl::StatusOr<std::unique_ptr<CheckpointSource>> Make(
      TorchStateDict state, std::unique_ptr<StorageReader> storages, uint64_t file_bytes);

  absl::Status Read(size_t index, uint64_t first, std::span<float> out) override;
  bool Same(size_t a, size_t b) const override;

 private:
  TorchCheckpoint(TorchStateDict state, std::unique_ptr<StorageReader> storages,
                  uint64_t file_bytes);

  TorchStateDict state_;
  std::unique_ptr<StorageReader> storages_;
  StridedReader reader_;
};

// The two containers. Errors name neither file nor path.
absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenZipCheckpoint(const std::string& path);
absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenLegacyCheckpoint(const std::string& path);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_TORCH_CHECKPOINT_H_
