// Reads MessagePack item by item from a file, without holding its contents.
#ifndef HIPPODROME_TOOLS_CONVERT_FLAX_MSGPACK_READER_H_
#define HIPPODROME_TOOLS_CONVERT_FLAX_MSGPACK_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/convert/random_access_file.h"

namespace hippodrome {

// An item without its contents, which follow in the file.
struct MsgpackItem {
  enum class Kind : uint8_t {
    kNil,
    kBoolean,
    kInteger,
    kFloat,
    kString,
    kBinary,
    kArray,
    kMap,
    kExtension,
  };
  Kind kind = Kind::kNil;
  uint64_t size =
      0;  // bytes of a string, binary or extension, elements of an array, pairs of a map
  int64_t integer = 0;   // of kInteger
  int8_t extension = 0;  // type of kExtension
};

// "a map" and so on, for messages.
const char* Describe(MsgpackItem::Kind kind);

// One thread at a time.
class MsgpackReader {
 public:
  // `file` must outlive the reader.
  explicit MsgpackReader(const RandomAccessFile& file) : file_(file) {}

  uint64_t position() const { return position_; }

  // The next item; moves behind its head, to its contents. What it announces is no more than what
  // is left of the file. Errors: kInvalidArgument with the position.
  absl::StatusOr<MsgpackItem> Next();
  // The contents of a string of `size` bytes.
  absl::StatusOr<std::string> Text(uint64_t size);
  // REQUIRES: so many bytes are left.
  void Skip(uint64_t bytes) { position_ += bytes; }

 private:
  uint64_t left() const { return file_.size() - position_; }
  // A big-endian unsigned integer of `width` <= 8 bytes.
  absl::StatusOr<uint64_t> Unsigned(uint64_t width);
  absl::StatusOr<MsgpackItem> Integer(uint64_t width, bool is_signed);
  // Items whose size takes `width` bytes, 0 for `size`; an extension's type comes behind it.
  absl::StatusOr<MsgpackItem> Sized(MsgpackItem::Kind kind, uint64_t width, uint64_t size = 0);
  absl::StatusOr<MsgpackItem> Float(uint64_t width);

  const RandomAccessFile& file_;
  uint64_t position_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_FLAX_MSGPACK_READER_H_
