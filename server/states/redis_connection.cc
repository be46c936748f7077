#include "server/states/redis_connection.h"

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/base/one_line.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

// What is left until then, at least a moment: 0 would be no limit.
timeval Until(RedisConnection::Time until) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
      until - std::chrono::steady_clock::now());
  constexpr int64_t kSecond = 1'000'000;
  const int64_t microseconds = std::max<int64_t>(left.count(), 1);
  return {.tv_sec = microseconds / kSecond, .tv_usec = microseconds % kSecond};
}

absl::Status CheckReply(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ERROR) return absl::OkStatus();
  const std::string_view text(reply.str, static_cast<size_t>(reply.len));
  const std::string message = "Redis: " + OneLine(text);
  // A server that starts or follows another one has no time for us now; one without memory may
  // have some later.
  if (text.starts_with("OOM")) return ResourceExhausted(message);
  if (text.starts_with("LOADING") || text.starts_with("READONLY")) return Unavailable(message);
  return Internal(message);
}

}  // namespace

void RedisConnection::Free::operator()(redisContext* context) const { redisFree(context); }
void RedisConnection::Free::operator()(redisReply* reply) const { freeReplyObject(reply); }

RedisConnection::RedisConnection(std::unique_ptr<redisContext, Free> context)
    : context_(std::move(context)) {}

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Open(const RedisAddress& address,
                                                                       Time until) {
  std::unique_ptr<redisContext, Free> context(
      redisConnectWithTimeout(address.server.host.c_str(), address.server.port, Until(until)));
  if (context == nullptr) return Unavailable("Redis: no memory for a connection");
  std::unique_ptr<RedisConnection> connection(new RedisConnection(std::move(context)));
  if (connection->context_->err != 0) return connection->Broken();
  if (address.database != 0) {
    const std::string database = std::to_string(address.database);
    const auto selected = connection->Call({"SELECT", database}, until);
    if (!selected.ok()) return Unavailable(Message(selected.status()));
  }
  return connection;
}

absl::StatusOr<RedisConnection::Reply> RedisConnection::Call(
    const std::vector<std::string_view>& words, Time until) {
  std::vector<const char*> starts;
  std::vector<size_t> sizes;
  for (const std::string_view word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  redisContext* const c = context_.get();
  if (redisAppendCommandArgv(c, static_cast<int>(words.size()), starts.data(), sizes.data()) !=
      REDIS_OK) {
    return Broken();
  }
  // Each write and each read gets what is left, so that a server that drips is no exception.
  for (int done = 0; done == 0;) {
    HIPPODROME_RETURN_IF_ERROR(SetTimeLimit(until));
    if (redisBufferWrite(c, &done) != REDIS_OK) return Broken();
  }
  void* reply = nullptr;
  while (true) {
    if (redisGetReplyFromReader(c, &reply) != REDIS_OK) return Broken();
    if (reply != nullptr) break;
    HIPPODROME_RETURN_IF_ERROR(SetTimeLimit(until));
    if (redisBufferRead(c) != REDIS_OK) return Broken();
  }
  Reply owned(static_cast<redisReply*>(reply));
  HIPPODROME_RETURN_IF_ERROR(CheckReply(*owned));
  return owned;
}

absl::Status RedisConnection::SetTimeLimit(Time until) {
  if (std::chrono::steady_clock::now() >= until) {
    return Unavailable("Redis: no answer within the time limit");
  }
  if (redisSetTimeout(context_.get(), Until(until)) != REDIS_OK) return Broken();
  return absl::OkStatus();
}

absl::Status RedisConnection::Broken() const {
  return Unavailable(std::string("Redis: ") + OneLine(context_->errstr));
}

}  // namespace hippodrome
