#include "tools/train/checkpoint/checksum.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace hippodrome {
namespace {

constexpr uint64_t kBasis = 0xcbf29ce484222325;
constexpr uint64_t kPrime = 0x100000001b3;

uint64_t Mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kPrime;
  return hash ^ (hash >> 32);
}

}  // namespace

std::string Checksum(std::span<const std::byte> bytes) {
  uint64_t hash = Mix(kBasis, bytes.size());
  size_t done = 0;
  for (; done + sizeof(uint64_t) <= bytes.size(); done += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + done, sizeof(word));
    hash = Mix(hash, word);
  }
  uint64_t rest = 0;
  if (done < bytes.size()) std::memcpy(&rest, bytes.data() + done, bytes.size() - done);
  return fmt::format("{:016x}", Mix(hash, rest));
}

std::string Checksum(std::string_view text) {
  return Checksum(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace hippodrome
