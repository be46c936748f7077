// Builds torch.save files, wrong ones included.
#ifndef HIPPODROME_TESTS_TOOLS_CONVERT_TORCH_BUILDER_H_
#define HIPPODROME_TESTS_TOOLS_CONVERT_TORCH_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/convert/checkpoint_source.h"

namespace hippodrome {

// Pieces of pickle: each leaves one value on the stack.
namespace pickled {
std::string Text(const std::string& text);
std::string Integer(int64_t value);
std::string Integers(const std::vector<int64_t>& values);  // a tuple
std::string Global(const std::string& module, const std::string& name);
std::string Call(const std::string& callable, const std::vector<std::string>& arguments);
// A dict with alternating keys and values.
std::string Dict(const std::vector<std::string>& items);
std::string Storage(const std::string& type, const std::string& key, int64_t elements);
std::string Tensor(const std::string& storage, int64_t offset, const std::vector<int64_t>& shape,
                   const std::vector<int64_t>& strides);
// The whole pickle: protocol 2, value, end.
std::string Whole(const std::string& value);
}  // namespace pickled

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
