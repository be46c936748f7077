#include "engine/tokenizer/byte_symbols.h"

#include <array>

#include "engine/tokenizer/utf8.h"

namespace hippodrome {
namespace {

constexpr bool IsPrintable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// The code points that stand for the bytes.
constexpr std::array<int32_t, 256> MakeCodePoints() {
  std::array<int32_t, 256> code_points{};
  int32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) code_points[byte] = IsPrintable(byte) ? byte : next++;
  return code_points;
}
constexpr std::array<int32_t, 256> kCodePoints = MakeCodePoints();

constexpr int kSymbols = 0x100 + 68;

// The bytes that the code points stand for, or -1.
constexpr std::array<int16_t, kSymbols> MakeBytes() {
  std::array<int16_t, kSymbols> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  for (int byte = 0; byte < 256; ++byte) bytes[kCodePoints[byte]] = static_cast<int16_t>(byte);
  return bytes;
}
constexpr std::array<int16_t, kSymbols> kBytes = MakeBytes();

}  // namespace

std::optional<std::string> BytesOfSymbols(std::string_view symbols) {
  std::string bytes;
  while (!symbols.empty()) {
    const Utf8Char symbol = FirstUtf8Char(symbols);
    if (symbol.kind != Utf8Char::Kind::kValid || symbol.code_point >= kSymbols) return std::nullopt;
    const int byte = kBytes[symbol.code_point];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    symbols.remove_prefix(symbol.length);
  }
  return bytes;
}

std::string SymbolOfByte(uint8_t byte) {
  const int32_t code_point = kCodePoints[byte];
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3f))};
}

}  // namespace hippodrome
