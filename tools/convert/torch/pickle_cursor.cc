#include "tools/convert/torch/pickle_cursor.h"

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<std::string_view> PickleCursor::Bytes(uint64_t count) {
  const size_t left = bytes_.size() - position_;
  if (count > left) {
    return InvalidArgument("needs " + std::to_string(count) + " more bytes, only " +
                           std::to_string(left) + " are left");
  }
  const std::string_view result = bytes_.substr(position_, count);
  position_ += count;
  return result;
}

absl::StatusOr<uint64_t> PickleCursor::Unsigned(size_t width) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string_view bytes, Bytes(width));
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

absl::StatusOr<int64_t> PickleCursor::Signed(size_t width) {
  HIPPODROME_ASSIGN_OR_RETURN(const uint64_t value, Unsigned(width));
  if (width == 0) return 0;
  const int unused = 64 - 8 * static_cast<int>(width);
  return static_cast<int64_t>(value << unused) >> unused;
}

absl::StatusOr<std::string_view> PickleCursor::Counted(size_t width) {
  HIPPODROME_ASSIGN_OR_RETURN(const uint64_t count, Unsigned(width));
  return Bytes(count);
}

absl::StatusOr<std::string_view> PickleCursor::Line() {
  const size_t end = bytes_.find('\n', position_);
  if (end == std::string_view::npos) return InvalidArgument("a line without an end");
  const std::string_view line = bytes_.substr(position_, end - position_);
  position_ = end + 1;
  return line;
}

}  // namespace hippodrome
