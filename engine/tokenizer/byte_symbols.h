// The visible characters by which vocabulary files write bytes.
#ifndef HIPPODROME_ENGINE_TOKENIZER_BYTE_SYMBOLS_H_
#define HIPPODROME_ENGINE_TOKENIZER_BYTE_SYMBOLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hippodrome {

// Byte-level tokens are written one character per byte: printable bytes of Latin-1 ('!' to '~',
// 0xA1 to 0xAC, 0xAE to 0xFF) by the character of the same number, the other 68 in ascending order
// by U+0100, U+0101, ... So a space is written U+0120.

// The bytes that `symbols` (UTF-8) stand for, or nothing if one of them stands for no byte.
std::optional<std::string> BytesOfSymbols(std::string_view symbols);

// The character, in UTF-8, that stands for `byte`.
std::string SymbolOfByte(uint8_t byte);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_BYTE_SYMBOLS_H_
