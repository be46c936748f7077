#include "server/reload.h"

#include "engine/base/status.h"

namespace hippodrome {

void Reloadables::Add(Reloadable reloadable) {
  std::lock_guard lock(mutex_);
  reloadables_.push_back(std::move(reloadable));
}

absl::StatusOr<std::vector<std::string>> Reloadables::Reload(const ServerOptions& options) {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  std::vector<std::function<void()>> changes;
  for (const Reloadable& reloadable : reloadables_) {
    absl::StatusOr<std::function<void()>> change = reloadable.prepare(options);
    if (!change.ok()) {
      return absl::Status(change.status().code(),
                          reloadable.name + ": " + Message(change.status()));
    }
    if (*change == nullptr) continue;
    names.push_back(reloadable.name);
    changes.push_back(*std::move(change));
  }
  for (const std::function<void()>& change : changes) change();
  return names;
}

}  // namespace hippodrome
