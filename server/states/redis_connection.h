// One connection to Redis whose calls end in time.
#ifndef HIPPODROME_SERVER_STATES_REDIS_CONNECTION_H_
#define HIPPODROME_SERVER_STATES_REDIS_CONNECTION_H_

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/address.h"

struct redisContext;
struct redisReply;

namespace hippodrome {

struct RedisAddress {
  HostPort server;
  int database = 0;
};

// Not thread-safe.
class RedisConnection {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Free {
    void operator()(redisContext* context) const;
    void operator()(redisReply* reply) const;
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  // Errors: kUnavailable. A host that is a name takes the time that its resolver takes.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Open(const RedisAddress& address,
                                                               Time until);

  // Sends a command and waits for its reply. Errors: kUnavailable where that is not there at
  // `until`, or the connection ended, after which it is of no more use; kResourceExhausted where
  // Redis has no memory for it, kInternal for any other error that Redis replies.
  absl::StatusOr<Reply> Call(const std::vector<std::string_view>& words, Time until);

 private:
  explicit RedisConnection(std::unique_ptr<redisContext, Free> context);
  // Lets the next read or write last until then.
  absl::Status SetTimeLimit(Time until);
  absl::Status Broken() const;

  std::unique_ptr<redisContext, Free> context_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_STATES_REDIS_CONNECTION_H_
