#include "engine/base/xxh3.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace hippodrome {

struct Xxh3::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh3{XXH3_createState()};
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) {
  if (state_->xxh3 == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh3.get());
}

Xxh3::~Xxh3() = default;

void Xxh3::Add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;  // an empty span may have no address
  XXH3_128bits_update(state_->xxh3.get(), bytes.data(), bytes.size());
}

std::string Xxh3::Hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh3.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace hippodrome
