// Reading and writing safetensors files.
//
// Format: u64 little-endian header length; that many bytes of JSON,
// {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, .., "__metadata__":
// {..}}; then the data, to which the offsets are relative. Tensors cover the data without gaps or
// overlaps.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_SAFETENSORS_H_
#define HIPPODROME_ENGINE_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"

namespace hippodrome {

// One tensor of an open file. `data` points into the mapping, at any alignment.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;

  int64_t elements() const;
};

// An open, memory-mapped, validated file. Thread-safe once open.
class SafetensorsFile {
 public:
  // Validates everything against the size of the file: header length, JSON, dtypes, shapes (no
  // overflow), offsets (in order, contiguous, covering, matching shape and dtype).
  // Errors: kNotFound, or kInvalidArgument naming file, tensor, what was found and expected.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& path() const;
  // All tensors, by name.
  const std::map<std::string, TensorView>& tensors() const;
  const std::map<std::string, std::string>& metadata() const;

  // Null when absent.
  const TensorView* Find(const std::string& name) const;
  // The tensor with that name and exactly that shape. Errors: kNotFound, or kInvalidArgument with
  // both shapes. Valid while the file is open.
  absl::StatusOr<TensorView> Get(const std::string& name, const std::vector<int64_t>& shape) const;
  // Tells the kernel that the pages of `tensor` will not be read again soon, so that they do not
  // count as resident.
  void Drop(const TensorView& tensor) const;

 private:
  struct Impl;
  explicit SafetensorsFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Parses the bytes of a whole file; what Open() does after mapping. The views point into `bytes`.
struct SafetensorsIndex {
  std::map<std::string, TensorView> tensors;
  std::map<std::string, std::string> metadata;
};
absl::StatusOr<SafetensorsIndex> ParseSafetensors(std::span<const std::byte> bytes);

// Converts `tensor` (F32, F16, BF16 or F64) to f32. Errors: kInvalidArgument for other dtypes.
absl::StatusOr<std::vector<float>> ToFloats(const TensorView& tensor);
// I64 or I32 to int64_t.
absl::StatusOr<std::vector<int64_t>> ToIntegers(const TensorView& tensor);

// Name, dtype and shape of a tensor to be written.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

// What a file of these tensors begins with, before their data in the order of `specs`. Errors:
// kInvalidArgument.
struct SafetensorsHead {
  std::string text;        // the header with its length
  uint64_t data_size = 0;  // that follow
};
absl::StatusOr<SafetensorsHead> MakeSafetensorsHead(
    const std::vector<TensorSpec>& specs, const std::map<std::string, std::string>& metadata);

// Writes a file tensor by tensor in the order of `specs`, in constant memory. The file appears
// under its name only when Finish() succeeds (it is written beside it, synced and renamed); without
// that the destructor removes what was written.
class SafetensorsWriter {
 public:
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(
      const std::string& path, const std::vector<TensorSpec>& specs,
      const std::map<std::string, std::string>& metadata = {});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Appends the next bytes of the data. Errors: kInternal with the system's reason (disk full).
  absl::Status Append(std::span<const std::byte> bytes);
  // REQUIRES: exactly the announced number of bytes was appended.
  absl::Status Finish();

 private:
  struct Impl;
  explicit SafetensorsWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CHECKPOINT_SAFETENSORS_H_
