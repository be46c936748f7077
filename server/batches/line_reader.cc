#include "server/batches/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

}  // namespace

// zlib hands on what is not packed as it is.
struct LineReader::File {
  gzFile gzip = nullptr;
  int64_t size = 0;  // as it lies on disk; 0: no regular file

  ~File() {
    if (gzip != nullptr) gzclose(gzip);
  }
};

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path,
                                                             int64_t most_bytes) {
  const int descriptor = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return NotFound(path + ": " + std::strerror(errno));
  auto file = std::make_unique<File>();
  struct stat status = {};
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) file->size = status.st_size;
  file->gzip = gzdopen(descriptor, "rb");
  if (file->gzip == nullptr) {
    close(descriptor);
    return ResourceExhausted(path + ": no memory to read it");
  }
  gzbuffer(file->gzip, kReadBytes);
  return std::unique_ptr<LineReader>(new LineReader(path, most_bytes, std::move(file)));
}

LineReader::LineReader(std::string path, int64_t most_bytes, std::unique_ptr<File> file)
    : path_(std::move(path)),
      most_bytes_(most_bytes),
      file_(std::move(file)),
      buffer_(kReadBytes) {}

LineReader::~LineReader() = default;

absl::Status LineReader::Failure() const {
  int code = Z_OK;
  const char* message = gzerror(file_->gzip, &code);
  if (code == Z_ERRNO) return Internal(path_ + ": " + std::strerror(errno));
  if (code == Z_BUF_ERROR) return InvalidArgument(path_ + ": the gzip data ends early");
  return InvalidArgument(path_ + ": the gzip data is broken: " + message);
}

absl::StatusOr<bool> LineReader::Fill() {
  const int read = gzread(file_->gzip, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  if (read < 0) return Failure();
  next_ = 0;
  filled_ = static_cast<size_t>(read);
  if (read > 0) return true;
  int code = Z_OK;
  gzerror(file_->gzip, &code);
  if (code != Z_OK) return Failure();
  return false;
}

absl::StatusOr<bool> LineReader::Next(InputLine& line) {
  line.text.clear();
  line.too_long = line.ended = false;
  if (position_ >= end_) return false;
  const int64_t begin = position_;
  while (!line.ended) {
    if (next_ == filled_) {
      HIPPODROME_ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) break;
    }
    const char* first = buffer_.data() + next_;
    const auto* end = static_cast<const char*>(std::memchr(first, '\n', filled_ - next_));
    const size_t size = end == nullptr ? filled_ - next_ : static_cast<size_t>(end - first);
    line.ended = end != nullptr;
    line.too_long = line.too_long || static_cast<int64_t>(line.text.size() + size) > most_bytes_;
    if (line.too_long) {
      line.text.clear();
    } else {
      line.text.append(first, size);
    }
    const size_t taken = size + (line.ended ? 1 : 0);
    next_ += taken;
    position_ += static_cast<int64_t>(taken);
  }
  return position_ > begin;
}

absl::StatusOr<int64_t> LineReader::UnpackedSize() {
  if (gzdirect(file_->gzip) != 0) return file_->size;
  int64_t size = 0;
  for (;;) {
    HIPPODROME_ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) break;
    size += static_cast<int64_t>(filled_);
  }
  filled_ = 0;
  if (gzrewind(file_->gzip) != 0) return Failure();
  return size;
}

absl::Status LineReader::Seek(int64_t position) {
  next_ = filled_ = 0;
  position_ = position;
  if (gzseek(file_->gzip, position, SEEK_SET) != position) return Failure();
  return absl::OkStatus();
}

absl::Status LineReader::TakeShare(int64_t index, int64_t count) {
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t size, UnpackedSize());
  // Beyond 2^63 where they are multiplied first.
  const auto bound = [&](int64_t i) { return size / count * i + size % count * i / count; };
  begin_ = bound(index);
  end_ = bound(index + 1);
  if (begin_ == 0 || begin_ == end_) return Seek(begin_);
  // The line that the share begins in is of the one before, unless its first byte is here.
  HIPPODROME_RETURN_IF_ERROR(Seek(begin_ - 1));
  InputLine before;
  return Next(before).status();
}

LineReader::Progress LineReader::progress() const {
  if (end_ != INT64_MAX) return {std::min(position_, end_) - begin_, end_ - begin_};
  if (file_->size == 0) return {};
  return {std::min<int64_t>(gzoffset(file_->gzip), file_->size), file_->size};
}

}  // namespace hippodrome
