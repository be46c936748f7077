#include "tests/tools/convert/msgpack_builder.h"

namespace hippodrome::msgpack {
namespace {

std::string Join(const std::vector<std::string>& items) {
  std::string joined;
  for (const std::string& item : items) joined += item;
  return joined;
}

}  // namespace

std::string Binary(const std::string& bytes) { return BinaryHead(bytes.size()) + bytes; }

std::string Array(const std::vector<std::string>& items) {
  return ArrayHead(items.size()) + Join(items);
}

std::string Map(const std::vector<std::string>& items) {
  return MapHead(items.size() / 2) + Join(items);
}

std::string Extension(int8_t type, const std::string& payload) {
  return ExtensionHead(type, payload.size()) + payload;
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
