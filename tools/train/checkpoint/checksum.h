// Detects damage; no defence against forgery.
#ifndef HIPPODROME_TOOLS_TRAIN_CHECKPOINT_CHECKSUM_H_
#define HIPPODROME_TOOLS_TRAIN_CHECKPOINT_CHECKSUM_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hippodrome {

// 16 hexadecimal digits of FNV-1a's form over words of 8 bytes, the last one filled up with zeros,
// and the length: h = (h xor word) p, h = h xor (h >> 32). Each step is one-to-one, so that bytes
// that differ within one word always give another value.
std::string Checksum(std::span<const std::byte> bytes);
std::string Checksum(std::string_view text);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_CHECKPOINT_CHECKSUM_H_
