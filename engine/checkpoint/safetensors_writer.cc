#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/base/durable_files.h"
#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/safetensors_header.h"

namespace hippodrome {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Lays the tensors side by side. Errors: kInvalidArgument.
absl::StatusOr<OrderedJson> DescribeTensors(const std::vector<TensorSpec>& specs,
                                            uint64_t& data_size) {
  OrderedJson json = OrderedJson::object();
  for (const TensorSpec& spec : specs) {
    if (json.contains(spec.name)) {
      return InvalidArgument("two tensors are named \"" + OneLine(spec.name) + "\"");
    }
    HIPPODROME_ASSIGN_OR_RETURN(const uint64_t bytes, TensorBytes(spec.dtype, spec.shape));
    const uint64_t begin = data_size;
    if (__builtin_add_overflow(begin, bytes, &data_size) || data_size > INT64_MAX) {
      return InvalidArgument("the tensors take more than 2^63 bytes");
    }
    json[spec.name] = {
        {"dtype", Name(spec.dtype)}, {"shape", spec.shape}, {"data_offsets", {begin, data_size}}};
  }
  return json;
}

}  // namespace

absl::StatusOr<SafetensorsHead> MakeSafetensorsHead(
    const std::vector<TensorSpec>& specs, const std::map<std::string, std::string>& metadata) {
  // The data start at a multiple of this, so that mapped tensors can be used in place.
  constexpr size_t kAlignment = 64;
  SafetensorsHead head;
  HIPPODROME_ASSIGN_OR_RETURN(OrderedJson json, DescribeTensors(specs, head.data_size));
  if (!metadata.empty()) json["__metadata__"] = metadata;
  std::string text;
  try {
    text = json.dump();
  } catch (const OrderedJson::exception&) {
    return InvalidArgument("a tensor name or the metadata are not UTF-8");
  }
  while ((sizeof(uint64_t) + text.size()) % kAlignment != 0) text += ' ';
  const uint64_t length = text.size();
  if (length > kLongestSafetensorsHeader) return InvalidArgument("the header is too long");
  head.text.assign(reinterpret_cast<const char*>(&length), sizeof(length));
  head.text += text;
  return head;
}

struct SafetensorsWriter::Impl {
  std::string path;
  std::string partial;     // the file while it is written
  FILE* file = nullptr;    // null once finished or failed
  uint64_t remaining = 0;  // bytes of data to come

  // Removes what was written.
  absl::Status Fail(const std::string& reason) {
    if (file != nullptr) std::fclose(file);
    file = nullptr;
    unlink(partial.c_str());
    return Internal(path + ": " + reason);
  }

  absl::Status Write(const void* data, size_t size) {
    if (std::fwrite(data, 1, size, file) == size) return absl::OkStatus();
    return Fail(std::strerror(errno));
  }
};

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SafetensorsWriter::~SafetensorsWriter() {
  if (impl_->file != nullptr) impl_->Fail("abandoned").IgnoreError();
}

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, const std::vector<TensorSpec>& specs,
    const std::map<std::string, std::string>& metadata) {
  auto head = MakeSafetensorsHead(specs, metadata);
  if (!head.ok()) return InvalidArgument(path + ": " + Message(head.status()));
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->partial = path + ".partial";
  impl->remaining = head->data_size;
  impl->file = std::fopen(impl->partial.c_str(), "wbe");
  if (impl->file == nullptr) return Internal(impl->partial + ": " + std::strerror(errno));
  std::unique_ptr<SafetensorsWriter> writer(new SafetensorsWriter(std::move(impl)));
  HIPPODROME_RETURN_IF_ERROR(writer->impl_->Write(head->text.data(), head->text.size()));
  return writer;
}

absl::Status SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  if (impl_->file == nullptr) return FailedPrecondition(impl_->path + ": not open for writing");
  if (bytes.size() > impl_->remaining) {
    return impl_->Fail(
        fmt::format("{} bytes more than announced", bytes.size() - impl_->remaining));
  }
  impl_->remaining -= bytes.size();
  if (bytes.empty()) return absl::OkStatus();  // an empty span may have no address
  return impl_->Write(bytes.data(), bytes.size());
}

absl::Status SafetensorsWriter::Finish() {
  Impl& impl = *impl_;
  if (impl.file == nullptr) return FailedPrecondition(impl.path + ": not open for writing");
  if (impl.remaining != 0) {
    return impl.Fail(fmt::format("{} bytes fewer than announced", impl.remaining));
  }
  if (std::fflush(impl.file) != 0 || fsync(fileno(impl.file)) != 0) {
    return impl.Fail(std::strerror(errno));
  }
  const bool closed = std::fclose(std::exchange(impl.file, nullptr)) == 0;
  if (!closed) return impl.Fail(std::strerror(errno));
  const absl::Status renamed = RenameDurably(impl.partial, impl.path);
  if (!renamed.ok()) unlink(impl.partial.c_str());
  return renamed;
}

}  // namespace hippodrome
