#include "tools/convert/flax/msgpack_reader.h"

#include <span>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

using ItemKind = MsgpackItem::Kind;

// The least bytes that the contents of an item take.
uint64_t LeastBytes(const MsgpackItem& item) {
  return item.kind == ItemKind::kMap ? 2 * item.size : item.size;
}

}  // namespace

const char* Describe(ItemKind kind) {
  switch (kind) {
    case ItemKind::kNil:
      return "nil";
    case ItemKind::kBoolean:
      return "a boolean";
    case ItemKind::kInteger:
      return "an integer";
    case ItemKind::kFloat:
      return "a float";
    case ItemKind::kString:
      return "a string";
    case ItemKind::kBinary:
      return "binary data";
    case ItemKind::kArray:
      return "an array";
    case ItemKind::kMap:
      return "a map";
    case ItemKind::kExtension:
      return "an extension";
  }
  return "";
}

absl::StatusOr<uint64_t> MsgpackReader::Unsigned(uint64_t width) {
  std::byte bytes[8];
  HIPPODROME_RETURN_IF_ERROR(file_.Read(position_, std::span(bytes).first(width)));
  position_ += width;
  uint64_t value = 0;
  for (uint64_t i = 0; i < width; ++i) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

absl::StatusOr<MsgpackItem> MsgpackReader::Integer(uint64_t width, bool is_signed) {
  HIPPODROME_ASSIGN_OR_RETURN(const uint64_t bits, Unsigned(width));
  const uint64_t unused = 64 - 8 * width;
  const auto extended = static_cast<int64_t>(bits << unused) >> unused;
  if (!is_signed && bits > INT64_MAX) {
    return InvalidArgument("integer " + std::to_string(bits) + " at byte " +
                           std::to_string(position_ - width) + "; expected at most 63 bits");
  }
  return MsgpackItem{.kind = ItemKind::kInteger,
                     .integer = is_signed ? extended : static_cast<int64_t>(bits)};
}

absl::StatusOr<MsgpackItem> MsgpackReader::Sized(ItemKind kind, uint64_t width, uint64_t size) {
  MsgpackItem item{.kind = kind, .size = size};
  if (width > 0) {
    HIPPODROME_ASSIGN_OR_RETURN(item.size, Unsigned(width));
  }
  if (kind == ItemKind::kExtension) {
    HIPPODROME_ASSIGN_OR_RETURN(const uint64_t type, Unsigned(1));
    item.extension = static_cast<int8_t>(type);
  }
  if (LeastBytes(item) <= left()) return item;
  return InvalidArgument(std::string(Describe(kind)) + " of size " + std::to_string(item.size) +
                         " at byte " + std::to_string(position_) + ", where " +
                         std::to_string(left()) + " bytes are left");
}

absl::StatusOr<MsgpackItem> MsgpackReader::Float(uint64_t width) {
  HIPPODROME_RETURN_IF_ERROR(Unsigned(width).status());
  return MsgpackItem{.kind = ItemKind::kFloat};
}

absl::StatusOr<MsgpackItem> MsgpackReader::Next() {
  HIPPODROME_ASSIGN_OR_RETURN(const uint64_t head, Unsigned(1));
  if (head <= 0x7f) {
    return MsgpackItem{.kind = ItemKind::kInteger, .integer = static_cast<int64_t>(head)};
  }
  if (head >= 0xe0) {
    return MsgpackItem{.kind = ItemKind::kInteger, .integer = static_cast<int8_t>(head)};
  }
  if (head <= 0x8f) return Sized(ItemKind::kMap, 0, head & 15);
  if (head <= 0x9f) return Sized(ItemKind::kArray, 0, head & 15);
  if (head <= 0xbf) return Sized(ItemKind::kString, 0, head & 31);
  switch (head) {
    case 0xc0:
      return MsgpackItem{.kind = ItemKind::kNil};
    case 0xc2:
    case 0xc3:
      return MsgpackItem{.kind = ItemKind::kBoolean};
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return Sized(ItemKind::kBinary, uint64_t{1} << (head - 0xc4));
    case 0xc7:
    case 0xc8:
    case 0xc9:
      return Sized(ItemKind::kExtension, uint64_t{1} << (head - 0xc7));
    case 0xca:
    case 0xcb:
      return Float(uint64_t{4} << (head - 0xca));
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return Integer(uint64_t{1} << (head - 0xcc), false);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return Integer(uint64_t{1} << (head - 0xd0), true);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return Sized(ItemKind::kExtension, 0, uint64_t{1} << (head - 0xd4));
    case 0xd9:
    case 0xda:
    case 0xdb:
      return Sized(ItemKind::kString, uint64_t{1} << (head - 0xd9));
    case 0xdc:
    case 0xdd:
      return Sized(ItemKind::kArray, uint64_t{2} << (head - 0xdc));
    case 0xde:
    case 0xdf:
      return Sized(ItemKind::kMap, uint64_t{2} << (head - 0xde));
    default:
      return InvalidArgument("byte " + std::to_string(position_ - 1) +
                             " is 0xc1; expected the head of a MessagePack item");
  }
}

absl::StatusOr<std::string> MsgpackReader::Text(uint64_t size) {
  std::string text(size, '\0');
  HIPPODROME_RETURN_IF_ERROR(file_.Read(position_, std::as_writable_bytes(std::span(text))));
  position_ += size;
  return text;
}

}  // namespace hippodrome
