#include "engine/base/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace hippodrome {

struct Checksum::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh3{XXH3_createState()};
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  if (state_->xxh3 == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh3.get());
}

Checksum::~Checksum() = default;

void Checksum::Add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;  // an empty span may have no address
  XXH3_128bits_update(state_->xxh3.get(), bytes.data(), bytes.size());
}

std::string Checksum::Hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh3.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace hippodrome
