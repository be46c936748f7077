#include "tools/evaluate/data_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "engine/base/status.h"
#include "tools/command_line/text_file.h"

namespace hippodrome {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";

// Owns zlib's state for reading gzip.
class Inflater {
 public:
  explicit Inflater(std::string_view packed) : rest_(packed) {
    ok_ = inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK;  // 16: gzip, not zlib
  }
  ~Inflater() {
    if (ok_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends the next part to `text`. Z_OK, Z_STREAM_END after the last one, or an error.
  int Next(std::string& text) {
    if (!ok_) return Z_MEM_ERROR;
    if (stream_.avail_in == 0) Feed();
    stream_.next_out = buffer_.data();
    stream_.avail_out = static_cast<uInt>(buffer_.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    text.append(reinterpret_cast<const char*>(buffer_.data()), buffer_.size() - stream_.avail_out);
    if (result != Z_STREAM_END || (stream_.avail_in == 0 && rest_.empty())) return result;
    return inflateReset(&stream_);  // another member follows
  }

 private:
  void Feed() {
    const std::string_view part = rest_.substr(0, std::numeric_limits<uInt>::max());
    rest_.remove_prefix(part.size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    stream_.avail_in = static_cast<uInt>(part.size());
  }

  std::string_view rest_;
  z_stream stream_ = {};
  std::array<Bytef, 1 << 16> buffer_;
  bool ok_ = false;
};

}  // namespace

absl::StatusOr<std::string> Gunzip(std::string_view packed, int64_t most) {
  Inflater inflater(packed);
  std::string text;
  int result = Z_OK;
  while (result == Z_OK) {
    result = inflater.Next(text);
    if (std::ssize(text) > most) {
      return InvalidArgument("has more than " + std::to_string(most) + " bytes unpacked");
    }
  }
  if (result == Z_STREAM_END) return text;
  return InvalidArgument(result == Z_BUF_ERROR ? "the gzip data ends early"
                                               : "the gzip data is broken");
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return {status.code(), path + ": " + Message(status)};
}

absl::StatusOr<std::string> ReadDataFile(const std::string& path) {
  auto text = ReadTextFile(path);
  if (!text.ok() || !text->starts_with(kGzipMagic)) return text;
  auto unpacked = Gunzip(*text, kMostDataBytes);
  if (!unpacked.ok()) return InFile(path, unpacked.status());
  return unpacked;
}

}  // namespace hippodrome
