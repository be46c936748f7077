#include "server/states/state_signature.h"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/escaping.h"
#include "engine/base/guarded_file.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr size_t kCodeBytes = 32;
constexpr size_t kLeastKeyBytes = kCodeBytes;  // a shorter key is easier to guess than a code
constexpr size_t kMostKeyBytes = 1024;
constexpr int64_t kMostKeyFileBytes = 4096;

struct FreeMac {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};

// OpenSSL refuses none of this but for want of memory.
void Need(bool done) {
  if (!done) throw std::bad_alloc();
}

}  // namespace

StateSigner HmacSha256(std::string key) {
  return [key = std::move(key)](std::span<const std::span<const std::byte>> parts) {
    const std::unique_ptr<EVP_MAC, FreeMac> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    Need(mac != nullptr);
    const std::unique_ptr<EVP_MAC_CTX, FreeMac> context(EVP_MAC_CTX_new(mac.get()));
    char digest[] = "SHA256";
    const std::array<OSSL_PARAM, 2> parameters = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    Need(context != nullptr &&
         EVP_MAC_init(context.get(), reinterpret_cast<const unsigned char*>(key.data()), key.size(),
                      parameters.data()) == 1);
    for (const std::span<const std::byte> part : parts) {
      Need(EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(part.data()),
                          part.size()) == 1);
    }
    std::string code(kCodeBytes, '\0');
    size_t size = 0;
    Need(EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(code.data()), &size,
                       code.size()) == 1);
    return absl::BytesToHexString(code);
  };
}

absl::StatusOr<std::string> ReadStateKey(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(std::string key, ReadGuardedFile(path, kMostKeyFileBytes));
  key.resize(key.find_last_not_of("\r\n") + 1);
  if (key.size() >= kLeastKeyBytes && key.size() <= kMostKeyBytes) return key;
  return InvalidArgument(fmt::format("{}: a key of {} bytes, expected {} to {}", path, key.size(),
                                     kLeastKeyBytes, kMostKeyBytes));
}

}  // namespace hippodrome
