#include "engine/checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors_header.h"

namespace hippodrome {

// ---- A read-only memory mapping of a file
// --------------------------------------------------------

// The file must not shrink while it is mapped. Thread-safe.
class MappedFile {
 public:
  // Errors: kNotFound, or kInvalidArgument with the system's reason; both name the path.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  // Lets go of the memory of the pages that lie within `part`, which is part of bytes(). They are
  // read from the file again when they are touched.
  void Drop(std::span<const std::byte> part) const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  const std::span<const std::byte> bytes_;
};

namespace {

absl::Status SystemError(const std::string& path) {
  const std::string message = path + ": " + std::strerror(errno);
  return errno == ENOENT ? NotFound(message) : InvalidArgument(message);
}

absl::StatusOr<std::span<const std::byte>> Map(int descriptor, const std::string& path) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) return SystemError(path);
  if (!S_ISREG(info.st_mode)) return InvalidArgument(path + ": expected a regular file");
  const size_t size = static_cast<size_t>(info.st_size);
  // An empty mapping does not exist.
  if (size == 0) return std::span<const std::byte>();
  void* start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (start == MAP_FAILED) return SystemError(path);
  // Tensors are read from beginning to end, once.
  madvise(start, size, MADV_SEQUENTIAL);
  return std::span(static_cast<const std::byte*>(start), size);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return SystemError(path);
  const auto bytes = Map(descriptor, path);
  close(descriptor);
  if (!bytes.ok()) return bytes.status();
  return std::unique_ptr<MappedFile>(new MappedFile(*bytes));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::Drop(std::span<const std::byte> part) const {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t start = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (start + page - 1) / page * page;
  const uintptr_t last = (start + part.size()) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

// ---- The format
// ----------------------------------------------------------------------------------

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
