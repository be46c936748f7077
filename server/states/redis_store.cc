#include "server/states/redis_store.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "engine/base/status.h"
#include "engine/state/state_file.h"

namespace hippodrome {
namespace {

using Reply = RedisConnection::Reply;
using SteadyClock = std::chrono::steady_clock;

// What the key of a state says.
struct RedisEntry {
  std::string version;  // random: chunks of two writers never mix
  int64_t bytes = 0;
  int64_t expires_at = 0;

  std::string Text() const { return fmt::format("{} {} {}", version, bytes, expires_at); }
};

bool TakeNumber(std::string_view& text, int64_t& number) {
  if (!text.starts_with(' ')) return false;
  text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc() && number >= 0;
}

std::optional<RedisEntry> ParseEntry(std::string_view text) {
  const size_t space = std::min(text.find(' '), text.size());
  RedisEntry entry{.version = std::string(text.substr(0, space))};
  text.remove_prefix(space);
  if (!IsStateHandle(entry.version) || !TakeNumber(text, entry.bytes) ||
      !TakeNumber(text, entry.expires_at) || !text.empty()) {
    return std::nullopt;
  }
  return entry;
}

// Of a reply that is a string; else nothing.
std::optional<std::string_view> TextOf(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_STRING) return std::nullopt;
  return std::string_view(reply.str, static_cast<size_t>(reply.len));
}

// The calls of one operation, with one time limit.
class RedisSession {
 public:
  RedisSession(std::unique_ptr<RedisConnection> connection, RedisConnection::Time until)
      : connection_(std::move(connection)), until_(until) {}

  absl::StatusOr<Reply> Call(const std::vector<std::string_view>& words) {
    return connection_->Call(words, until_);
  }
  std::unique_ptr<RedisConnection> TakeConnection() { return std::move(connection_); }

 private:
  std::unique_ptr<RedisConnection> connection_;
  RedisConnection::Time until_;
};

class RedisStore final : public StateStore {
 public:
  RedisStore(const RedisStoreOptions& options, StateStoreMetrics& metrics)
      : StateStore(metrics), options_(options) {}

  bool shared() const override { return true; }

 private:
  absl::StatusOr<StoredState> DoPut(const std::string& owner, const std::string& handle,
                                    const StateBytes& file, std::chrono::seconds lives) override {
    HIPPODROME_ASSIGN_OR_RETURN(std::string version, NewStateHandle());
    const RedisEntry entry{std::move(version), std::ssize(*file), UnixSeconds() + lives.count()};
    auto stored = Within<StoredState>([&](RedisSession& redis) -> absl::StatusOr<StoredState> {
      const std::string key = KeyOf(owner, handle);
      const auto old = EntryAt(redis, key);
      if (!old.ok() && !absl::IsNotFound(old.status())) return old.status();
      const absl::Status status = PutInto(redis, owner, handle, *file, entry, lives);
      if (!status.ok()) {  // what is there in part is of no use, and takes room
        if (!absl::IsUnavailable(status)) RemoveChunks(redis, key, entry).IgnoreError();
        return status;
      }
      if (old.ok()) HIPPODROME_RETURN_IF_ERROR(RemoveChunks(redis, key, *old));
      return StoredState{handle, entry.bytes, entry.expires_at};
    });
    // A full Redis may have room later.
    if (absl::IsResourceExhausted(stored.status())) return Unavailable(Message(stored.status()));
    return stored;
  }

  absl::StatusOr<StateBytes> DoGet(const std::string& owner, const std::string& handle) override {
    return Within<StateBytes>([&](RedisSession& redis) -> absl::StatusOr<StateBytes> {
      const std::string key = KeyOf(owner, handle);
      HIPPODROME_ASSIGN_OR_RETURN(const RedisEntry entry, EntryAt(redis, key));
      auto bytes = std::make_shared<std::string>();
      for (int64_t i = 0; i < Chunks(entry); ++i) {
        HIPPODROME_ASSIGN_OR_RETURN(const Reply reply,
                                    redis.Call({"GET", ChunkKey(key, entry, i)}));
        const auto chunk = TextOf(*reply);
        if (!chunk) return NoSuchState();  // evicted
        bytes->append(*chunk);
      }
      if (std::ssize(*bytes) == entry.bytes && SummarizeStateFile(*bytes).ok()) {
        return StateBytes(std::move(bytes));
      }
      metrics().Damaged();
      return NoSuchState();
    });
  }

  absl::Status DoRemove(const std::string& owner, const std::string& handle) override {
    return Within<bool>([&](RedisSession& redis) -> absl::StatusOr<bool> {
             const std::string key = KeyOf(owner, handle);
             HIPPODROME_ASSIGN_OR_RETURN(const RedisEntry entry, EntryAt(redis, key));
             // First goes the key by which the rest is found.
             HIPPODROME_RETURN_IF_ERROR(redis.Call({"DEL", key}).status());
             HIPPODROME_RETURN_IF_ERROR(redis.Call({"HDEL", IndexOf(owner), handle}).status());
             HIPPODROME_RETURN_IF_ERROR(RemoveChunks(redis, key, entry));
             return true;
           })
        .status();
  }

  absl::StatusOr<std::vector<StoredState>> DoList(const std::string& owner) override {
    using States = std::vector<StoredState>;
    return Within<States>([&](RedisSession& redis) -> absl::StatusOr<States> {
      const std::string index = IndexOf(owner);
      HIPPODROME_ASSIGN_OR_RETURN(const Reply all, redis.Call({"HGETALL", index}));
      States states;
      for (size_t i = 0; i + 1 < all->elements; i += 2) {
        const auto handle = TextOf(*all->element[i]);
        const auto text = TextOf(*all->element[i + 1]);
        if (!handle || !text) continue;
        // Expired or evicted ones are still in the hash.
        HIPPODROME_ASSIGN_OR_RETURN(const Reply reply,
                                    redis.Call({"GET", KeyOf(owner, std::string(*handle))}));
        const auto entry = TextOf(*reply) == text ? ParseEntry(*text) : std::nullopt;
        if (entry) {
          states.push_back({std::string(*handle), entry->bytes, entry->expires_at});
        } else {
          HIPPODROME_RETURN_IF_ERROR(redis.Call({"HDEL", index, *handle}).status());
        }
      }
      return states;
    });
  }

  // ---- What is stored
  // ----------------------------------------------------------------------------

  static std::string IndexOf(const std::string& owner) {
    return "hippodrome:states:" + absl::BytesToHexString(owner);
  }
  static std::string KeyOf(const std::string& owner, const std::string& handle) {
    return "hippodrome:state:" + absl::BytesToHexString(owner) + ":" + handle;
  }
  static std::string ChunkKey(const std::string& key, const RedisEntry& entry, int64_t chunk) {
    return fmt::format("{}:{}:{}", key, entry.version, chunk);
  }
  int64_t Chunks(const RedisEntry& entry) const {
    const auto size = static_cast<int64_t>(options_.chunk_bytes);
    return (entry.bytes + size - 1) / size;
  }

  static absl::StatusOr<RedisEntry> EntryAt(RedisSession& redis, const std::string& key) {
    HIPPODROME_ASSIGN_OR_RETURN(const Reply reply, redis.Call({"GET", key}));
    const auto text = TextOf(*reply);
    auto entry = text ? ParseEntry(*text) : std::nullopt;
    if (!entry) return NoSuchState();
    return *std::move(entry);
  }

  // Last comes the key by which the rest is found.
  absl::Status PutInto(RedisSession& redis, const std::string& owner, const std::string& handle,
                       std::string_view file, const RedisEntry& entry, std::chrono::seconds lives) {
    const std::string key = KeyOf(owner, handle);
    const std::string seconds = std::to_string(lives.count());
    for (int64_t i = 0; i < Chunks(entry); ++i) {
      const std::string_view chunk =
          file.substr(static_cast<size_t>(i) * options_.chunk_bytes, options_.chunk_bytes);
      HIPPODROME_RETURN_IF_ERROR(
          redis.Call({"SET", ChunkKey(key, entry, i), chunk, "EX", seconds}).status());
    }
    const std::string index = IndexOf(owner);
    // The index lives as long as the last of its states, and does not end between two calls.
    HIPPODROME_RETURN_IF_ERROR(redis.Call({"EXPIRE", index, seconds, "GT"}).status());
    HIPPODROME_RETURN_IF_ERROR(redis.Call({"HSET", index, handle, entry.Text()}).status());
    HIPPODROME_RETURN_IF_ERROR(redis.Call({"EXPIRE", index, seconds, "NX"}).status());
    return redis.Call({"SET", key, entry.Text(), "EX", seconds}).status();
  }

  absl::Status RemoveChunks(RedisSession& redis, const std::string& key, const RedisEntry& entry) {
    for (int64_t i = 0; i < Chunks(entry); ++i) {
      HIPPODROME_RETURN_IF_ERROR(redis.Call({"UNLINK", ChunkKey(key, entry, i)}).status());
    }
    return absl::OkStatus();
  }

  // ---- Connections
  // -------------------------------------------------------------------------------

  // What `work` gives, within the time limit. A connection that was idle may have ended with a
  // Redis that has been restarted since: then it is tried once more on a new one.
  template <typename Value, typename Work>
  absl::StatusOr<Value> Within(const Work& work) {
    const RedisConnection::Time until = SteadyClock::now() + options_.time_limit;
    HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<RedisConnection> connection, TakeIdle());
    if (connection != nullptr) {
      RedisSession redis(std::move(connection), until);
      absl::StatusOr<Value> value = work(redis);
      if (!absl::IsUnavailable(value.status())) return Done(redis, std::move(value));
    }
    auto opened = RedisConnection::Open(options_.address, until);
    if (!opened.ok()) return Failed(opened.status());
    RedisSession redis(*std::move(opened), until);
    absl::StatusOr<Value> value = work(redis);
    if (absl::IsUnavailable(value.status())) return Failed(value.status());
    return Done(redis, std::move(value));
  }

  // Null where there is none. Errors: kUnavailable while Redis gets a rest.
  absl::StatusOr<std::unique_ptr<RedisConnection>> TakeIdle() {
    const std::lock_guard lock(mutex_);
    if (SteadyClock::now() < resting_until_) return Unavailable(failure_);
    if (idle_.empty()) return nullptr;
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  template <typename Value>
  absl::StatusOr<Value> Done(RedisSession& redis, absl::StatusOr<Value> value) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(redis.TakeConnection());
    return value;
  }

  absl::Status Failed(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    failure_ = Message(status);
    resting_until_ = SteadyClock::now() + options_.rest;
    idle_.clear();
    return status;
  }

  const RedisStoreOptions options_;
  std::mutex mutex_;  // guards all below
  std::vector<std::unique_ptr<RedisConnection>> idle_;
  RedisConnection::Time resting_until_;
  std::string failure_;  // why
};

}  // namespace

std::unique_ptr<StateStore> MakeRedisStore(const RedisStoreOptions& options,
                                           StateStoreMetrics& metrics) {
  return std::make_unique<RedisStore>(options, metrics);
}

}  // namespace hippodrome
