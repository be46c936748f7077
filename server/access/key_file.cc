#include "server/access/key_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "engine/base/field_error.h"
#include "engine/base/guarded_file.h"
#include "engine/base/status.h"
#include "server/json/json_fields.h"

namespace hippodrome {
namespace {

constexpr size_t kMostKeys = 1000;
constexpr size_t kMostSecrets = 8;
constexpr size_t kMostModels = 64;
constexpr size_t kMostKeyNameBytes = 64;
constexpr int64_t kMostFileBytes = int64_t{4} << 20;

absl::Status Prefix(const std::string& prefix, const absl::Status& status) {
  if (status.ok()) return status;
  return {status.code(), prefix + ": " + Message(status)};
}

absl::Status CheckMembers(const Json& object, const char* what,
                          std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return WrongType(what, "an object", object);
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), std::string_view(name)) == known.end()) {
      return FieldError(name.substr(0, kMostKeyNameBytes),
                        "unknown; expected " + fmt::format("{}", fmt::join(known, ", ")));
    }
    if (value.is_null()) return WrongType(name.c_str(), "a value", value);
  }
  return absl::OkStatus();
}

absl::StatusOr<const Json*> RequiredArray(const Json& object, const char* name, size_t most) {
  const Json* array = Find(object, name);
  if (array == nullptr) return FieldError(name, "missing");
  if (!array->is_array()) return WrongType(name, "an array", *array);
  if (array->empty() || array->size() > most) {
    return FieldError(name, fmt::format("{} entries, expected 1 to {}", array->size(), most));
  }
  return array;
}

absl::StatusOr<std::optional<int64_t>> ReadLimit(const Json& limits, const char* name,
                                                 int64_t most) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::optional<int64_t> value, IntegerField(limits, name));
  if (value && (*value < 1 || *value > most)) {
    return FieldError(name, fmt::format("{}, expected 1 to {}", *value, most));
  }
  return value;
}

absl::StatusOr<KeyLimits> ReadLimits(const Json& json) {
  HIPPODROME_RETURN_IF_ERROR(
      CheckMembers(json, "limits", {"requests_per_minute", "burst", "calls", "tokens", "bytes"}));
  KeyLimits limits;
  HIPPODROME_ASSIGN_OR_RETURN(limits.requests_per_minute,
                              ReadLimit(json, "requests_per_minute", 1000000000));
  HIPPODROME_ASSIGN_OR_RETURN(limits.burst, ReadLimit(json, "burst", 1000000000));
  HIPPODROME_ASSIGN_OR_RETURN(limits.calls, ReadLimit(json, "calls", 1000000));
  HIPPODROME_ASSIGN_OR_RETURN(limits.tokens, ReadLimit(json, "tokens", 1000000000000000));
  HIPPODROME_ASSIGN_OR_RETURN(limits.bytes, ReadLimit(json, "bytes", 1000000000000000000));
  if (limits.burst && !limits.requests_per_minute) {
    return FieldError("burst", "it needs requests_per_minute");
  }
  return limits;
}

absl::StatusOr<absl::Time> ReadTime(const std::string& text) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error) ||
      absl::ParseTime("%Y-%m-%d", text, &time, &error)) {
    return time;
  }
  return FieldError("expires", "'" + text.substr(0, kMostKeyNameBytes) +
                                   "', expected 2030-01-31 or 2030-01-31T12:00:00Z");
}

absl::StatusOr<KeySecret> ReadSecret(const Json& json) {
  HIPPODROME_RETURN_IF_ERROR(CheckMembers(json, "secrets", {"sha256", "expires"}));
  HIPPODROME_ASSIGN_OR_RETURN(const auto hex, TextField(json, "sha256"));
  if (!hex) return FieldError("sha256", "missing");
  KeySecret secret;
  const std::optional<KeyDigest> digest = DigestFromHex(*hex);
  if (!digest) return FieldError("sha256", "expected 64 hexadecimal digits");
  secret.digest = *digest;
  HIPPODROME_ASSIGN_OR_RETURN(const auto expires, TextField(json, "expires"));
  if (expires) {
    HIPPODROME_ASSIGN_OR_RETURN(secret.expires, ReadTime(*expires));
  }
  return secret;
}

absl::StatusOr<std::vector<std::string>> ReadModels(const Json& json) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json* array, RequiredArray(json, "models", kMostModels));
  std::vector<std::string> models;
  for (const Json& model : *array) {
    if (!model.is_string()) return WrongType("models", "names", model);
    models.push_back(model.get<std::string>());
  }
  return models;
}

absl::StatusOr<ApiKey> ReadApiKey(const Json& json) {
  ApiKey key;
  HIPPODROME_ASSIGN_OR_RETURN(const auto name, TextField(json, "name"));
  if (!name) return FieldError("name", "missing");
  key.name = *name;
  HIPPODROME_RETURN_IF_ERROR(CheckKeyName(key.name));
  HIPPODROME_ASSIGN_OR_RETURN(const Json* secrets, RequiredArray(json, "secrets", kMostSecrets));
  for (const Json& secret : *secrets) {
    HIPPODROME_ASSIGN_OR_RETURN(key.secrets.emplace_back(), ReadSecret(secret));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto admin, BoolField(json, "admin"));
  key.admin = admin.value_or(false);
  if (const Json* limits = Find(json, "limits")) {
    HIPPODROME_ASSIGN_OR_RETURN(key.limits, ReadLimits(*limits));
  }
  if (Find(json, "models") != nullptr) {
    HIPPODROME_ASSIGN_OR_RETURN(key.models, ReadModels(json));
  }
  return key;
}

// keys[3], with its name where that can be told.
std::string PlaceOf(size_t index, const Json& json) {
  std::string place = fmt::format("keys[{}]", index);
  const Json* name = json.is_object() ? Find(json, "name") : nullptr;
  if (name == nullptr || !name->is_string()) return place;
  const auto text = name->get<std::string>();
  return CheckKeyName(text).ok() ? place + " '" + text + "'" : place;
}

absl::Status CheckUnique(const ApiKey& key, std::set<std::string>& names,
                         std::set<KeyDigest>& digests) {
  if (!names.insert(key.name).second) {
    return FieldError("name",
                      "there is another key of this name; one key may have several secrets");
  }
  for (const KeySecret& secret : key.secrets) {
    if (digests.insert(secret.digest).second) continue;
    return FieldError("sha256", "the same secret is in the file already");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckKeyName(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
  if (plain && !name.empty() && name.size() <= kMostKeyNameBytes) return absl::OkStatus();
  return FieldError("name", "expected 1 to 64 of A-Z a-z 0-9 . _ -");
}

absl::StatusOr<std::vector<ApiKey>> ParseApiKeys(const std::string& text) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(text, "the file"));
  HIPPODROME_RETURN_IF_ERROR(CheckMembers(json, "keys", {"keys"}));
  HIPPODROME_ASSIGN_OR_RETURN(const Json* array, RequiredArray(json, "keys", kMostKeys));
  std::vector<ApiKey> keys;
  std::set<std::string> names;
  std::set<KeyDigest> digests;
  for (size_t i = 0; i < array->size(); ++i) {
    const Json& entry = (*array)[i];
    const std::string place = PlaceOf(i, entry);
    HIPPODROME_RETURN_IF_ERROR(Prefix(
        place, CheckMembers(entry, "key", {"name", "secrets", "admin", "limits", "models"})));
    absl::StatusOr<ApiKey> key = ReadApiKey(entry);
    if (!key.ok()) return Prefix(place, key.status());
    HIPPODROME_RETURN_IF_ERROR(Prefix(place, CheckUnique(*key, names, digests)));
    keys.push_back(*std::move(key));
  }
  return keys;
}

absl::StatusOr<std::vector<ApiKey>> ReadApiKeys(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadGuardedFile(path, kMostFileBytes));
  absl::StatusOr<std::vector<ApiKey>> keys = ParseApiKeys(text);
  if (!keys.ok()) return Prefix(path, keys.status());
  return keys;
}

std::string KeyEntry(const std::string& name, const KeyDigest& digest, bool admin) {
  nlohmann::ordered_json entry = {{"name", name}, {"secrets", {{{"sha256", ToHex(digest)}}}}};
  if (admin) entry["admin"] = true;
  return entry.dump();
}

}  // namespace hippodrome
