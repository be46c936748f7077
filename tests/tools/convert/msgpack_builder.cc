#include "tests/tools/convert/msgpack_builder.h"

namespace hippodrome::msgpack {
namespace {

std::string Byte(uint64_t value) { return BigEndian(value, 1); }

// The head of an item whose size takes 1, 2 or 4 bytes after `head8`, `head8 + 1`, `head8 + 2`.
std::string Head(uint64_t head8, uint64_t size) {
  if (size < 0x100) return Byte(head8) + BigEndian(size, 1);
  if (size < 0x10000) return Byte(head8 + 1) + BigEndian(size, 2);
  return Byte(head8 + 2) + BigEndian(size, 4);
}

std::string Join(const std::vector<std::string>& items) {
  std::string joined;
  for (const std::string& item : items) joined += item;
  return joined;
}

// The head of an array or a map.
std::string CollectionHead(uint64_t fixed, uint64_t head16, uint64_t size) {
  return size < 16 ? Byte(fixed + size) : Byte(head16) + BigEndian(size, 2);
}

}  // namespace

std::string BigEndian(uint64_t value, int bytes) {
  std::string result;
  for (int i = bytes; i-- > 0;) result.push_back(static_cast<char>(value >> (8 * i)));
  return result;
}

std::string Integer(int64_t value) {
  if (value >= 0 && value < 0x80) return Byte(static_cast<uint64_t>(value));
  return Byte(0xd3) + BigEndian(static_cast<uint64_t>(value), 8);
}

std::string Text(const std::string& text) {
  return (text.size() < 32 ? Byte(0xa0 + text.size()) : Head(0xd9, text.size())) + text;
}

std::string Binary(const std::string& bytes) { return Head(0xc4, bytes.size()) + bytes; }

std::string Array(const std::vector<std::string>& items) {
  return CollectionHead(0x90, 0xdc, items.size()) + Join(items);
}

std::string Map(const std::vector<std::string>& items) {
  return CollectionHead(0x80, 0xde, items.size() / 2) + Join(items);
}

std::string Extension(int8_t type, const std::string& payload) {
  return Head(0xc7, payload.size()) + static_cast<char>(type) + payload;
}

std::string FlaxArray(const std::vector<int64_t>& shape, const std::string& type,
                      const std::string& bytes) {
  std::vector<std::string> dimensions;
  for (const int64_t dimension : shape) dimensions.push_back(Integer(dimension));
  return Extension(1, Array({Array(dimensions), Text(type), Binary(bytes)}));
}

std::string Tree(const std::map<std::string, std::string>& items) {
  std::map<std::string, std::map<std::string, std::string>> folders;
  std::map<std::string, std::string> values;
  for (const auto& [path, item] : items) {
    const size_t slash = path.find('/');
    if (slash == std::string::npos) {
      values[path] = item;
    } else {
      folders[path.substr(0, slash)][path.substr(slash + 1)] = item;
    }
  }
  for (const auto& [name, inside] : folders) values[name] = Tree(inside);
  std::vector<std::string> list;
  for (const auto& [key, value] : values) {
    list.push_back(Text(key));
    list.push_back(value);
  }
  return Map(list);
}

}  // namespace hippodrome::msgpack
