// Items of MessagePack as bytes, in their shortest form.
#ifndef HIPPODROME_TOOLS_CONVERT_FLAX_MSGPACK_WRITER_H_
#define HIPPODROME_TOOLS_CONVERT_FLAX_MSGPACK_WRITER_H_

#include <cstdint>
#include <string>

namespace hippodrome::msgpack {

std::string Integer(int64_t value);
std::string Text(const std::string& text);

// What stands before the contents: bytes of binary data and of an extension, elements of an array,
// pairs of a map. REQUIRES: below 2^32.
std::string BinaryHead(uint64_t bytes);
std::string ExtensionHead(int8_t type, uint64_t bytes);
std::string ArrayHead(uint64_t elements);
std::string MapHead(uint64_t pairs);

}  // namespace hippodrome::msgpack

#endif  // HIPPODROME_TOOLS_CONVERT_FLAX_MSGPACK_WRITER_H_
