#include "engine/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/checkpoint/mapped_file.h"
#include "engine/checkpoint/safetensors_header.h"

namespace hippodrome {
namespace {

static_assert(std::endian::native == std::endian::little);

// The header's text. Afterwards `bytes` is the data.
absl::StatusOr<std::string_view> TakeHeader(std::span<const std::byte>& bytes) {
  uint64_t length = 0;
  if (bytes.size() < sizeof(length)) {
    return InvalidArgument(
        fmt::format("the file has {} bytes, expected a header length of 8 bytes", bytes.size()));
  }
  std::memcpy(&length, bytes.data(), sizeof(length));
  bytes = bytes.subspan(sizeof(length));
  const uint64_t most = std::min<uint64_t>(bytes.size(), kLongestSafetensorsHeader);
  if (length > most) {
    return InvalidArgument(
        fmt::format("the header length is {}, expected at most {} (is this a safetensors file?)",
                    length, most));
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()), length);
  bytes = bytes.subspan(length);
  return header;
}

absl::Status CheckSize(const SafetensorsEntry& entry) {
  HIPPODROME_ASSIGN_OR_RETURN(const uint64_t bytes, TensorBytes(entry.dtype, entry.shape));
  if (entry.begin <= entry.end && entry.end - entry.begin == bytes) return absl::OkStatus();
  return InvalidArgument(fmt::format("data_offsets are [{}, {}], but {} {} takes {} bytes",
                                     entry.begin, entry.end, Name(entry.dtype),
                                     DimensionsText(entry.shape), bytes));
}

using NamedEntry = std::pair<const std::string, SafetensorsEntry>;

// Entries in the order of their data.
std::vector<const NamedEntry*> Ordered(const SafetensorsHeader& header) {
  std::vector<const NamedEntry*> order;
  for (const NamedEntry& entry : header.entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const NamedEntry* a, const NamedEntry* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  return order;
}

// Sizes match, and the tensors cover the data without gaps or overlaps.
absl::Status CheckLayout(const SafetensorsHeader& header, uint64_t data_size) {
  uint64_t covered = 0;
  for (const NamedEntry* named : Ordered(header)) {
    const auto& [name, entry] = *named;
    absl::Status status = CheckSize(entry);
    if (status.ok() && entry.begin != covered) {
      status = InvalidArgument(fmt::format("the data begin at {}, expected {}: the tensors {}",
                                           entry.begin, covered,
                                           entry.begin < covered ? "overlap" : "leave a gap"));
    }
    if (status.ok() && entry.end > data_size) {
      status = InvalidArgument(
          fmt::format("the data end at {}, but the file has only {} bytes", entry.end, data_size));
    }
    if (!status.ok()) {
      return InvalidArgument("tensor \"" + OneLine(name) + "\": " + Message(status));
    }
    covered = entry.end;
  }
  if (covered == data_size) return absl::OkStatus();
  return InvalidArgument(
      fmt::format("the file has {} bytes of data, but the tensors take {}", data_size, covered));
}

}  // namespace

int64_t TensorView::elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

absl::StatusOr<SafetensorsIndex> ParseSafetensors(std::span<const std::byte> bytes) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string_view text, TakeHeader(bytes));
  HIPPODROME_ASSIGN_OR_RETURN(SafetensorsHeader header, ParseSafetensorsHeader(text));
  HIPPODROME_RETURN_IF_ERROR(CheckLayout(header, bytes.size()));
  SafetensorsIndex index;
  for (auto& [name, entry] : header.entries) {
    index.tensors[name] = {name, entry.dtype, std::move(entry.shape),
                           bytes.subspan(entry.begin, entry.end - entry.begin)};
  }
  index.metadata = std::move(header.metadata);
  return index;
}

struct SafetensorsFile::Impl {
  std::string path;
  std::unique_ptr<MappedFile> file;
  SafetensorsIndex index;
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SafetensorsFile::~SafetensorsFile() = default;

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  HIPPODROME_ASSIGN_OR_RETURN(impl->file, MappedFile::Open(path));
  auto index = ParseSafetensors(impl->file->bytes());
  if (!index.ok()) return InvalidArgument(path + ": " + Message(index.status()));
  impl->index = *std::move(index);
  return std::unique_ptr<SafetensorsFile>(new SafetensorsFile(std::move(impl)));
}

const std::string& SafetensorsFile::path() const { return impl_->path; }

const std::map<std::string, TensorView>& SafetensorsFile::tensors() const {
  return impl_->index.tensors;
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return impl_->index.metadata;
}

const TensorView* SafetensorsFile::Find(const std::string& name) const {
  const auto found = tensors().find(name);
  return found == tensors().end() ? nullptr : &found->second;
}

absl::StatusOr<TensorView> SafetensorsFile::Get(const std::string& name,
                                                const std::vector<int64_t>& shape) const {
  const TensorView* tensor = Find(name);
  if (tensor == nullptr) return NotFound(path() + ": there is no tensor \"" + name + "\"");
  if (tensor->shape == shape) return *tensor;
  return InvalidArgument(fmt::format("{}: tensor \"{}\" has shape {}, expected {}", path(), name,
                                     DimensionsText(tensor->shape), DimensionsText(shape)));
}

void SafetensorsFile::Drop(const TensorView& tensor) const { impl_->file->Drop(tensor.data); }

}  // namespace hippodrome
