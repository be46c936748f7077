// Builds torch.save files, wrong ones included.
#ifndef HIPPODROME_TESTS_TOOLS_CONVERT_TORCH_BUILDER_H_
#define HIPPODROME_TESTS_TOOLS_CONVERT_TORCH_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/convert/checkpoint_source.h"
#include "tools/convert/torch/pickle_writer.h"

namespace hippodrome {

// The bytes of floats.
std::string Bytes(const std::vector<float>& values);

struct StorageBytes {
  std::string key;
  std::string bytes;
  uint64_t elements = 0;  // announced, in the legacy format
};

std::string ZipFile(const std::string& pickle, const std::vector<StorageBytes>& storages);
std::string LegacyFile(const std::string& pickle, const std::vector<StorageBytes>& storages);

// Writes `bytes` to a file in the test's temporary folder and gives its path.
std::string WriteTemporary(const std::string& name, const std::string& bytes);
absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenBytes(const std::string& bytes);
// The message with which opening `bytes` fails; "OK" when it does not.
std::string OpenError(const std::string& bytes);

// Every element of the tensor at `index`.
std::vector<float> ReadAll(CheckpointSource& source, size_t index);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TOOLS_CONVERT_TORCH_BUILDER_H_
