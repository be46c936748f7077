#include "tools/convert/torch/torch_checkpoint.h"

#include "engine/base/status.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

constexpr size_t kBufferBytes = size_t{32} << 20;

absl::Status CheckStorage(const TorchTensor& tensor, const StorageReader& storages) {
  const absl::StatusOr<uint64_t> bytes = storages.Bytes(tensor.storage.key);
  if (!bytes.ok()) {
    return InvalidArgument("tensor '" + Printable(tensor.name) + "': " + Message(bytes.status()));
  }
  if (*bytes != tensor.storage.bytes()) {
    return InvalidArgument("tensor '" + Printable(tensor.name) + "': storage '" +
                           tensor.storage.key + "' has " + std::to_string(*bytes) +
                           " bytes in the file; expected " +
                           std::to_string(tensor.storage.bytes()));
  }
  return absl::OkStatus();
}

}  // namespace

TorchCheckpoint::TorchCheckpoint(TorchStateDict state, std::unique_ptr<StorageReader> storages,
                                 uint64_t file_bytes)
    : state_(std::move(state)), storages_(std::move(storages)), reader_(*storages_, kBufferBytes) {
  lightning_ = state_.lightning;
  file_bytes_ = file_bytes;
  for (const TorchTensor& tensor : state_.tensors) {
    tensors_.push_back(
        {.name = tensor.name,
         .shape = tensor.shape,
         .type = tensor.storage.type,
         .is_float = tensor.storage.dtype.has_value() && IsFloat(*tensor.storage.dtype),
         .elements = tensor.elements()});
  }
}

absl::StatusOr<std::unique_ptr<CheckpointSource>> TorchCheckpoint::Make(
    TorchStateDict state, std::unique_ptr<StorageReader> storages, uint64_t file_bytes) {
  for (const TorchTensor& tensor : state.tensors) {
    HIPPODROME_RETURN_IF_ERROR(CheckStorage(tensor, *storages));
  }
  return std::unique_ptr<CheckpointSource>(
      new TorchCheckpoint(std::move(state), std::move(storages), file_bytes));
}

absl::Status TorchCheckpoint::Read(size_t index, uint64_t first, std::span<float> out) {
  const TorchTensor& tensor = state_.tensors[index];
  const absl::Status status = reader_.Read(tensor, first, out);
  if (status.ok()) return status;
  return absl::Status(status.code(), "tensor '" + Printable(tensor.name) + "': " + Message(status));
}

bool TorchCheckpoint::Same(size_t a, size_t b) const {
  const TorchTensor& x = state_.tensors[a];
  const TorchTensor& y = state_.tensors[b];
  return x.storage.key == y.storage.key && x.offset == y.offset && x.shape == y.shape &&
         x.strides == y.strides;
}

}  // namespace hippodrome
