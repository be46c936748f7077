// Reads the operands of pickle opcodes; every length is checked against what is left.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_CURSOR_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hippodrome {

class PickleCursor {
 public:
  explicit PickleCursor(std::span<const std::byte> bytes)
      : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

  size_t position() const { return position_; }

  // A little-endian unsigned integer of `width` <= 8 bytes.
  absl::StatusOr<uint64_t> Unsigned(size_t width);
  // A little-endian two's complement integer in the next `width` <= 8 bytes.
  absl::StatusOr<int64_t> Signed(size_t width);
  absl::StatusOr<std::string_view> Bytes(uint64_t count);
  // A length of `width` bytes, then that many bytes.
  absl::StatusOr<std::string_view> Counted(size_t width);
  // Up to and without the next newline, which is skipped.
  absl::StatusOr<std::string_view> Line();

 private:
  std::string_view bytes_;
  size_t position_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_CURSOR_H_
