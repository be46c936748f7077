// Integers as they lie in files.
#ifndef HIPPODROME_TOOLS_CONVERT_BYTE_ORDER_H_
#define HIPPODROME_TOOLS_CONVERT_BYTE_ORDER_H_

#include <cstdint>
#include <string>

namespace hippodrome {

// The lowest `bytes` <= 8 bytes of `value`, the least significant first, or last.
inline std::string LittleEndian(uint64_t value, int bytes) {
  std::string result;
  for (int i = 0; i < bytes; ++i) result.push_back(static_cast<char>(value >> (8 * i)));
  return result;
}

inline std::string BigEndian(uint64_t value, int bytes) {
  std::string result;
  for (int i = bytes; i-- > 0;) result.push_back(static_cast<char>(value >> (8 * i)));
  return result;
}

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_BYTE_ORDER_H_
