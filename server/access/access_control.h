// Who may call: API keys, for all transports.
#ifndef HIPPODROME_SERVER_ACCESS_ACCESS_CONTROL_H_
#define HIPPODROME_SERVER_ACCESS_ACCESS_CONTROL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/key_account.h"
#include "server/access/key_file.h"
#include "server/metrics/metrics.h"

namespace hippodrome {

// What it takes to make a call, where the server has keys at all.
enum class Access : uint8_t { kKey, kAdminKey, kOpen };

// Thread-safe.
class AccessControl {
 public:
  // `path`: of the file of keys, which Reload() reads: nobody is admitted before. Empty: there are
  // none, and everybody may do everything. `metrics` must outlive it.
  AccessControl(std::string path, Metrics& metrics)
      : path_(std::move(path)), metrics_(metrics), keys_(std::make_shared<Keys>()) {}

  bool has_keys() const { return !path_.empty(); }

  // Reads and checks the file at `path`, and returns what puts it into force; null where nothing is
  // new. From then on keys that are gone begin no more calls, and what limits count stays with the
  // keys that stay. Errors: those of ReadApiKeys(); kFailedPrecondition for a file where there was
  // none, and the other way round.
  absl::StatusOr<std::function<void()>> Prepare(const std::string& path);
  // Both at once, with the path of the constructor. After an error the old keys are in force.
  absl::Status Reload();

  // A call begins. `authorization`: what it says of itself, as HTTP's field, several of them joined
  // by commas; nothing where it says nothing. Null where no key is needed. Errors: kUnauthenticated
  // without a key that is valid, kPermissionDenied for one that is no admin's where that is needed,
  // those of KeyAccount::Enter().
  absl::StatusOr<std::shared_ptr<CallPermit>> Admit(
      const std::optional<std::string_view>& authorization, Access access) const;
  // A call begins that a job makes for the key of that name, in the background. Null where no key
  // is needed. Errors: kPermissionDenied where there is no such key any more; those of
  // KeyAccount::Enter().
  absl::StatusOr<std::shared_ptr<CallPermit>> AdmitJob(const std::string& key) const;
  // The same checks for what is no call: no limit counts it.
  absl::Status Check(const std::optional<std::string_view>& authorization, Access access) const;

 private:
  // Of a file as it was read once.
  struct Keys {
    struct Secret {
      absl::Time expires;
      bool admin = false;
      std::shared_ptr<KeyAccount> account;
    };
    std::vector<KeyDigest> digests;
    std::vector<Secret> secrets;  // as many
  };

  std::shared_ptr<const Keys> keys() const;
  void Install(std::vector<ApiKey> read);
  // Null where no key is needed.
  absl::StatusOr<std::shared_ptr<KeyAccount>> Find(
      const std::optional<std::string_view>& authorization, Access access) const;

  const std::string path_;
  Metrics& metrics_;
  std::mutex reload_mutex_;   // guards the next two
  std::vector<ApiKey> read_;  // those in force
  // Of all names that were ever in the file: what a key holds stays counted when its name leaves
  // and comes again.
  std::map<std::string, std::shared_ptr<KeyAccount>> accounts_;
  mutable std::mutex mutex_;  // guards keys_
  std::shared_ptr<const Keys> keys_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_ACCESS_ACCESS_CONTROL_H_
