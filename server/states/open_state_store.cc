#include "server/states/open_state_store.h"

#include <charconv>
#include <string_view>

#include "engine/base/status.h"
#include "server/states/directory_store.h"
#include "server/states/memory_store.h"
#include "server/states/redis_store.h"

namespace hippodrome {
namespace {

constexpr std::string_view kRedisScheme = "redis://";

}  // namespace

absl::StatusOr<RedisAddress> ParseRedisAddress(const std::string& text) {
  const absl::Status error =
      InvalidArgument("'" + text + "' is no address of Redis: expected redis://HOST:PORT/DATABASE");
  if (!text.starts_with(kRedisScheme)) return error;
  std::string rest = text.substr(kRedisScheme.size());
  RedisAddress address;
  const size_t slash = rest.find('/');
  if (slash != std::string::npos) {
    const char* const end = rest.data() + rest.size();
    const auto [last, code] = std::from_chars(rest.data() + slash + 1, end, address.database);
    if (code != std::errc() || last != end || address.database < 0) return error;
    rest.resize(slash);
  }
  const auto server = ParseAddress(rest);
  if (!server.ok() || server->port == 0) return error;
  address.server = *server;
  return address;
}

absl::StatusOr<std::unique_ptr<StateStore>> OpenStateStore(const std::string& place,
                                                           int64_t most_bytes,
                                                           StateStoreMetrics& metrics) {
  if (place == "memory") return MakeMemoryStore(most_bytes, metrics);
  if (place.empty()) return InvalidArgument("expected memory, a directory or redis://HOST:PORT/DB");
  if (!place.starts_with(kRedisScheme)) return OpenDirectoryStore(place, most_bytes, metrics);
  RedisStoreOptions options;
  HIPPODROME_ASSIGN_OR_RETURN(options.address, ParseRedisAddress(place));
  return MakeRedisStore(options, metrics);
}

}  // namespace hippodrome
