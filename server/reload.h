// What a running server takes anew when its operator says so.
#ifndef HIPPODROME_SERVER_RELOAD_H_
#define HIPPODROME_SERVER_RELOAD_H_

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/options.h"

namespace hippodrome {

// One thing that can change while the server runs.
struct Reloadable {
  std::string name;  // "keys", "certificates", "models": for the log
  // Reads and checks what `options` say, and the files that they name, and changes nothing. Returns
  // what puts that into force, which must not fail; null where nothing is new.
  std::function<absl::StatusOr<std::function<void()>>(const ServerOptions& options)> prepare;
};

// All of them. Thread-safe.
class Reloadables {
 public:
  void Add(Reloadable reloadable);
  // Prepares all, and then puts all into force: where one cannot be prepared, nothing changes, and
  // its error is returned, with its name. Else the names of those that had something new.
  absl::StatusOr<std::vector<std::string>> Reload(const ServerOptions& options);

 private:
  std::mutex mutex_;
  std::vector<Reloadable> reloadables_;  // guarded by mutex_
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_RELOAD_H_
