// Writes MessagePack and Flax files, wrong ones included.
#ifndef HIPPODROME_TESTS_TOOLS_CONVERT_MSGPACK_BUILDER_H_
#define HIPPODROME_TESTS_TOOLS_CONVERT_MSGPACK_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/convert/flax/msgpack_writer.h"

namespace hippodrome::msgpack {

// Each the bytes of one item.
std::string Binary(const std::string& bytes);
std::string Array(const std::vector<std::string>& items);
// Alternating keys and values.
std::string Map(const std::vector<std::string>& items);
std::string Extension(int8_t type, const std::string& payload);

// An array as Flax writes it.
std::string FlaxArray(const std::vector<int64_t>& shape, const std::string& type,
                      const std::string& bytes);
// The nested maps of items by their path, "a/b/c".
std::string Tree(const std::map<std::string, std::string>& items);

}  // namespace hippodrome::msgpack

#endif  // HIPPODROME_TESTS_TOOLS_CONVERT_MSGPACK_BUILDER_H_
