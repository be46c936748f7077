// The secrets of API keys: how they are made, kept and compared.
#ifndef HIPPODROME_SERVER_ACCESS_KEY_SECRET_H_
#define HIPPODROME_SERVER_ACCESS_KEY_SECRET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hippodrome {

// Of a secret, by SHA-256: what is kept of it. Secrets are 256 random bits, which nobody guesses
// however fast the hash is; so it needs neither salt nor slowness, which are for passwords.
using KeyDigest = std::array<uint8_t, 32>;

KeyDigest DigestOf(std::string_view secret);
// In hexadecimal, of which either case is read.
std::string ToHex(const KeyDigest& digest);
std::optional<KeyDigest> DigestFromHex(std::string_view hex);

// A new secret: "hk-" and 256 random bits in base64url. Errors: kInternal without randomness.
absl::StatusOr<std::string> NewSecret();

// The place of `digest`, or nothing. Visits all of `digests` and compares each as a whole, so that
// the time says nothing of how much is right, or of which is it.
std::optional<size_t> FindDigest(std::span<const KeyDigest> digests, const KeyDigest& digest);

// The secret in the value of an Authorization field, "Bearer SECRET" with the scheme in any case;
// nothing where it is anything else.
std::optional<std::string_view> BearerSecret(std::string_view authorization);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_ACCESS_KEY_SECRET_H_
