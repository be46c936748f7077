#include "server/access/access_control.h"

#include <utility>

#include "absl/time/clock.h"
#include "engine/base/status.h"

namespace hippodrome {

std::shared_ptr<const AccessControl::Keys> AccessControl::keys() const {
  std::lock_guard lock(mutex_);
  return keys_;
}

absl::StatusOr<std::function<void()>> AccessControl::Prepare(const std::string& path) {
  if (path.empty() == has_keys()) {
    return FailedPrecondition(
        "api-keys: a server that runs cannot begin, or cease, to ask for keys");
  }
  if (!has_keys()) return nullptr;
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<ApiKey> read, ReadApiKeys(path));
  {
    std::lock_guard lock(reload_mutex_);
    if (read == read_) return nullptr;
  }
  return [this, read = std::move(read)] { Install(read); };
}

absl::Status AccessControl::Reload() {
  HIPPODROME_ASSIGN_OR_RETURN(const std::function<void()> install, Prepare(path_));
  if (install) install();
  return absl::OkStatus();
}

void AccessControl::Install(std::vector<ApiKey> read) {
  std::lock_guard reload(reload_mutex_);
  const auto now = KeyAccount::Clock::now();
  auto fresh = std::make_shared<Keys>();
  for (const ApiKey& key : read) {
    std::shared_ptr<KeyAccount>& account = accounts_[key.name];
    if (account == nullptr) {
      account = std::make_shared<KeyAccount>(key, metrics_, now);
    } else {
      account->Configure(key, now);
    }
    for (const KeySecret& secret : key.secrets) {
      fresh->digests.push_back(secret.digest);
      fresh->secrets.push_back({secret.expires, key.admin, account});
    }
  }
  read_ = std::move(read);
  std::lock_guard lock(mutex_);
  keys_ = std::move(fresh);
}

absl::StatusOr<std::shared_ptr<KeyAccount>> AccessControl::Find(
    const std::optional<std::string_view>& authorization, Access access) const {
  if (!has_keys() || access == Access::kOpen) return nullptr;
  if (!authorization) {
    return absl::UnauthenticatedError("an API key is needed: send 'Authorization: Bearer KEY'");
  }
  const std::optional<std::string_view> secret = BearerSecret(*authorization);
  if (!secret) {
    return absl::UnauthenticatedError("Authorization must be one field, 'Bearer KEY'");
  }
  const std::shared_ptr<const Keys> keys = this->keys();
  const std::optional<size_t> place = FindDigest(keys->digests, DigestOf(*secret));
  if (!place) return absl::UnauthenticatedError("the API key is not known");
  const Keys::Secret& found = keys->secrets[*place];
  if (absl::Now() >= found.expires) {
    found.account->metrics().Refused(KeyRefusal::kExpired);
    return absl::UnauthenticatedError("the API key has expired");
  }
  if (access == Access::kAdminKey && !found.admin) {
    found.account->metrics().Refused(KeyRefusal::kAdmin);
    return absl::PermissionDeniedError("this takes the API key of an administrator");
  }
  return found.account;
}

absl::StatusOr<std::shared_ptr<CallPermit>> AccessControl::Admit(
    const std::optional<std::string_view>& authorization, Access access) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<KeyAccount> account,
                              Find(authorization, access));
  if (account == nullptr) return nullptr;
  return account->Enter(KeyAccount::Clock::now());
}

absl::StatusOr<std::shared_ptr<CallPermit>> AccessControl::AdmitJob(const std::string& key) const {
  if (!has_keys()) return nullptr;
  const std::shared_ptr<const Keys> keys = this->keys();
  const absl::Time now = absl::Now();
  for (const Keys::Secret& secret : keys->secrets) {
    if (secret.account->name() != key || now >= secret.expires) continue;
    return secret.account->Enter(KeyAccount::Clock::now(), CallKind::kBackground);
  }
  return absl::PermissionDeniedError("the API key '" + key +
                                     "' of the job is not there any more, or has expired");
}

absl::Status AccessControl::Check(const std::optional<std::string_view>& authorization,
                                  Access access) const {
  return Find(authorization, access).status();
}

}  // namespace hippodrome
