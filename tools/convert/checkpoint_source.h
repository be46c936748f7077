// A checkpoint file as a list of tensors that can be read piece by piece.
#ifndef HIPPODROME_TOOLS_CONVERT_CHECKPOINT_SOURCE_H_
#define HIPPODROME_TOOLS_CONVERT_CHECKPOINT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

struct SourceTensor {
  std::string name;  // as in the file
  std::vector<int64_t> shape;
  std::string type;       // "F32", "LongStorage", ..: for messages
  bool is_float = false;  // F32, F16, BF16 or F64: Read() works
  uint64_t elements = 0;  // product of the shape
};

// One thread at a time.
class CheckpointSource {
 public:
  virtual ~CheckpointSource() = default;

  // In the order of the file.
  const std::vector<SourceTensor>& tensors() const { return tensors_; }
  // True for a Lightning checkpoint, whose names have the prefix "model.".
  bool lightning() const { return lightning_; }
  // True for a Flax checkpoint, whose names are paths ("a/b/kernel") and whose kernels are [in,
  // out].
  bool flax() const { return flax_; }
  uint64_t file_bytes() const { return file_bytes_; }

  // Elements [first, first + out.size()) of tensors()[index], counted row by row, as f32.
  // REQUIRES: is_float; the range lies in the tensor. Errors: kInvalidArgument for a damaged file.
  virtual absl::Status Read(size_t index, uint64_t first, std::span<float> out) = 0;

  // True when both tensors are the same view of the same storage.
  virtual bool Same(size_t a, size_t b) const = 0;

 protected:
  std::vector<SourceTensor> tensors_;
  bool lightning_ = false;
  bool flax_ = false;
  uint64_t file_bytes_ = 0;
};

// The checkpoint that `path` means: the first of model.safetensors, pytorch_model.bin,
// flax_model.msgpack, each before its index, and model.pt that a directory has; or `path` itself.
// Errors: kNotFound for a directory that has none.
absl::StatusOr<std::string> FindCheckpoint(const std::string& path);

// Opens a torch.save file (zip or legacy; known by its content), a .safetensors file, a Flax file
// (.msgpack, or known by its content) or the files of an index (.index.json); of a directory, what
// FindCheckpoint() finds. Memory is bounded whatever the file holds. Errors: kNotFound, or
// kInvalidArgument naming the file, what was found and what was expected.
absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenCheckpoint(const std::string& path);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_CHECKPOINT_SOURCE_H_
