#include "server/access/key_secret.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr std::string_view kScheme = "bearer ";
constexpr size_t kSecretBytes = 32;

// RFC 6750's b64token, and more: no space, comma, quote or control character.
constexpr auto kSecretCharacters = [] {
  std::array<uint8_t, 256> allowed{};
  for (size_t c = '!'; c < 0x7f; ++c) allowed[c] = 1;
  for (const char c : {',', '"', ';', '\\'}) allowed[static_cast<size_t>(c)] = 0;
  return allowed;
}();

// Without branches, so that its time depends on the length alone.
bool IsSecret(std::string_view text) {
  uint8_t allowed = text.empty() ? 0 : 1;
  for (const char c : text) allowed &= kSecretCharacters[static_cast<uint8_t>(c)];
  return allowed != 0;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

KeyDigest DigestOf(std::string_view secret) {
  KeyDigest digest;
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data());
  return digest;
}

std::string ToHex(const KeyDigest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<KeyDigest> DigestFromHex(std::string_view hex) {
  KeyDigest digest;
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = HexValue(hex[2 * i]);
    const int low = HexValue(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(16 * high + low);
  }
  return digest;
}

absl::StatusOr<std::string> NewSecret() {
  std::string bytes(kSecretBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), kSecretBytes) != 1) {
    return Internal("OpenSSL has no random bytes");
  }
  std::string text;
  absl::WebSafeBase64Escape(bytes, &text);
  return "hk-" + text;
}

std::optional<size_t> FindDigest(std::span<const KeyDigest> digests, const KeyDigest& digest) {
  size_t found = digests.size();
  for (size_t i = 0; i < digests.size(); ++i) {
    const auto differs =
        static_cast<size_t>(CRYPTO_memcmp(digests[i].data(), digest.data(), digest.size()) != 0);
    // No branch: `found` where it differs, else i.
    const size_t mask = differs - 1;
    found = (found & ~mask) | (i & mask);
  }
  if (found == digests.size()) return std::nullopt;
  return found;
}

std::optional<std::string_view> BearerSecret(std::string_view authorization) {
  if (authorization.size() <= kScheme.size() ||
      !absl::EqualsIgnoreCase({authorization.data(), kScheme.size()},
                              {kScheme.data(), kScheme.size()})) {
    return std::nullopt;
  }
  std::string_view secret = authorization.substr(kScheme.size());
  secret.remove_prefix(std::min(secret.find_first_not_of(' '), secret.size()));
  if (!IsSecret(secret)) return std::nullopt;
  return secret;
}

}  // namespace hippodrome
