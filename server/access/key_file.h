// The file of API keys: who may call, and how much.
#ifndef HIPPODROME_SERVER_ACCESS_KEY_FILE_H_
#define HIPPODROME_SERVER_ACCESS_KEY_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/access/key_secret.h"

namespace hippodrome {

// What the calls of one key may take. Nothing: as much as the server gives.
struct KeyLimits {
  std::optional<int64_t> requests_per_minute;  // on average, [1, 1e9]
  std::optional<int64_t> burst;                // calls at once beyond that, [1, 1e9]
  std::optional<int64_t> calls;                // that wait or run at once, [1, 1e6]
  // That those reserve together: of decoders, prompts and the tokens that may follow; of encoders,
  // inputs with their padding, [1, 1e15].
  std::optional<int64_t> tokens;
  // Of decoders, states, keys and values as admission counts them; of encoders, outputs, [1, 1e18].
  std::optional<int64_t> bytes;

  bool operator==(const KeyLimits&) const = default;
};

struct KeySecret {
  KeyDigest digest;
  absl::Time expires = absl::InfiniteFuture();  // not valid from then on

  bool operator==(const KeySecret&) const = default;
};

struct ApiKey {
  std::string name;                // 1 to 64 of A-Z a-z 0-9 . _ -
  std::vector<KeySecret> secrets;  // at least one; several while they are changed
  bool admin = false;
  KeyLimits limits;
  std::optional<std::vector<std::string>> models;  // that it may run; nothing: all

  bool operator==(const ApiKey&) const = default;
};

// Reads {"keys": [{"name", "secrets": [{"sha256", "expires"}], "admin", "limits", "models"}]}.
// Errors: kInvalidArgument naming the key and the field: for what is unknown, missing, there twice,
// of another type or out of range; also for names or secrets that are there twice, and for more
// than 1000 keys.
absl::StatusOr<std::vector<ApiKey>> ParseApiKeys(const std::string& text);

// ParseApiKeys() of a file, which others than its owner and group may not read, and its owner alone
// may write: whoever writes it lets himself in. Errors name the file.
absl::StatusOr<std::vector<ApiKey>> ReadApiKeys(const std::string& path);

// OK, or kInvalidArgument for what cannot be the name of a key.
absl::Status CheckKeyName(const std::string& name);

// The entry of a new key, as ParseApiKeys() reads it.
std::string KeyEntry(const std::string& name, const KeyDigest& digest, bool admin);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_ACCESS_KEY_FILE_H_
