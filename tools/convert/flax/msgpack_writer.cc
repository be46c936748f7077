#include "tools/convert/flax/msgpack_writer.h"

#include <bit>

#include "tools/convert/byte_order.h"

namespace hippodrome::msgpack {
namespace {

// `head8` before a value of 1 byte, the next codes before those of 2, 4 and 8.
std::string Widening(uint64_t head8, uint64_t value) {
  int doublings = 0;
  while (doublings < 3 && value >> (8 << doublings) != 0) ++doublings;
  return BigEndian(head8 + doublings, 1) + BigEndian(value, 1 << doublings);
}

// The head of an array or a map: it has no form of 1 byte beside the fixed one.
std::string CollectionHead(uint64_t fixed, uint64_t head16, uint64_t size) {
  if (size < 16) return BigEndian(fixed + size, 1);
  if (size < 0x10000) return BigEndian(head16, 1) + BigEndian(size, 2);
  return BigEndian(head16 + 1, 1) + BigEndian(size, 4);
}

}  // namespace

std::string Integer(int64_t value) {
  if (value < 0) return BigEndian(0xd3, 1) + BigEndian(static_cast<uint64_t>(value), 8);
  if (value < 0x80) return BigEndian(static_cast<uint64_t>(value), 1);
  return Widening(0xcc, static_cast<uint64_t>(value));
}

std::string Text(const std::string& text) {
  const bool fixed = text.size() < 32;
  return (fixed ? BigEndian(0xa0 + text.size(), 1) : Widening(0xd9, text.size())) + text;
}

std::string BinaryHead(uint64_t bytes) { return Widening(0xc4, bytes); }

std::string ExtensionHead(int8_t type, uint64_t bytes) {
  std::string head;
  switch (bytes) {
    case 1:
    case 2:
    case 4:
    case 8:
    case 16:
      head = BigEndian(0xd4 + static_cast<uint64_t>(std::countr_zero(bytes)), 1);
      break;
    default:
      head = Widening(0xc7, bytes);
  }
  return head + static_cast<char>(type);
}

std::string ArrayHead(uint64_t elements) { return CollectionHead(0x90, 0xdc, elements); }

std::string MapHead(uint64_t pairs) { return CollectionHead(0x80, 0xde, pairs); }

}  // namespace hippodrome::msgpack
