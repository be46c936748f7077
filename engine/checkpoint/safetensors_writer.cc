#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/base/one_line.h"
#include "engine/base/partial_file.h"
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
  std::unique_ptr<PartialFile> file;
  uint64_t remaining = 0;  // bytes of data to come
};

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SafetensorsWriter::~SafetensorsWriter() = default;

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, const std::vector<TensorSpec>& specs,
    const std::map<std::string, std::string>& metadata) {
  auto head = MakeSafetensorsHead(specs, metadata);
  if (!head.ok()) return InvalidArgument(path + ": " + Message(head.status()));
  auto impl = std::make_unique<Impl>();
  impl->remaining = head->data_size;
  HIPPODROME_ASSIGN_OR_RETURN(impl->file, PartialFile::Create(path));
  HIPPODROME_RETURN_IF_ERROR(impl->file->Append(head->text));
  return std::unique_ptr<SafetensorsWriter>(new SafetensorsWriter(std::move(impl)));
}

absl::Status SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  if (impl_->file->open() && bytes.size() > impl_->remaining) {
    return impl_->file->Fail(
        fmt::format("{} bytes more than announced", bytes.size() - impl_->remaining));
  }
  impl_->remaining -= bytes.size();
  return impl_->file->Append(bytes);
}

absl::Status SafetensorsWriter::Finish() {
  if (impl_->file->open() && impl_->remaining != 0) {
    return impl_->file->Fail(fmt::format("{} bytes fewer than announced", impl_->remaining));
  }
  return impl_->file->Finish();
}

}  // namespace hippodrome
