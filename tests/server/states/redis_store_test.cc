// The store against a Redis of its own: stopped, paused, full and restarted. Skipped without
// redis-server (tools/deps --checks).
#include "server/states/redis_store.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/testing/state_stores.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::redis_store_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

constexpr char kProgram[] = "/usr/bin/redis-server";

uint16_t FreePort() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(descriptor);
  return ntohs(address.sin_port);
}

// A Redis without files, on a port of its own.
class RedisServer {
 public:
  explicit RedisServer(uint16_t port) : port_(port) { Start(); }
  ~RedisServer() { Stop(); }

  void Start() {
    std::vector<std::string> words = {
        kProgram,          "--port",    std::to_string(port_), "--bind", "127.0.0.1",
        "--save",          "",          "--appendonly",        "no",     "--dir",
        directory_.path(), "--logfile", directory_.File("log")};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&pid_, kProgram, nullptr, nullptr, arguments.data(), environ), 0);
    const auto until = SteadyClock::now() + seconds(60);
    while (!Call({"PING"}).ok() && SteadyClock::now() < until) {
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
  void Stop() {
    if (pid_ == 0) return;
    kill(pid_, SIGCONT);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void Pause() const { kill(pid_, SIGSTOP); }
  void Continue() const { kill(pid_, SIGCONT); }

  absl::Status Call(const std::vector<std::string_view>& words) const {
    const auto until = SteadyClock::now() + seconds(10);
    auto connection = RedisConnection::Open(address(), until);
    if (!connection.ok()) return connection.status();
    return (*connection)->Call(words, until).status();
  }
  RedisAddress address() const { return {.server = {"127.0.0.1", port_}, .database = 0}; }

 private:
  TemporaryDirectory directory_;
  uint16_t port_;
  pid_t pid_ = 0;
};

class RedisStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kProgram)) {
      GTEST_SKIP() << "there is no redis-server (tools/deps --checks installs it)";
    }
    signal(SIGPIPE, SIG_IGN);
    redis_ = std::make_unique<RedisServer>(FreePort());
    store_ = Make();
  }

  std::unique_ptr<StateStore> Make(milliseconds time_limit = seconds(30)) {
    return MakeRedisStore({.address = redis_->address(),
                           .time_limit = time_limit,
                           .rest = milliseconds(1),
                           .chunk_bytes = 500},
                          metrics_.metrics());
  }
  absl::Status Put(StateStore& store, const std::string& name, int64_t lives = 600) {
    return store.Put("owner", HandleOf(name), file_, seconds(lives)).status();
  }
  // Until it succeeds.
  bool PutSoon(StateStore& store, const std::string& name) {
    const auto until = SteadyClock::now() + seconds(60);
    while (!Put(store, name).ok()) {
      if (SteadyClock::now() > until) return false;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return true;
  }

  StoreMetrics metrics_;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<StateStore> store_;
  const StateBytes file_ = SmallStateFile(40);  // several chunks
};

TEST_F(RedisStoreTest, SharesStatesByOwnerAndHandle) {
  ASSERT_GT(file_->size(), 1500u);
  const auto other = Make();
  const auto stored = store_->Put("owner", HandleOf("a"), file_, seconds(60));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->bytes, std::ssize(*file_));
  EXPECT_EQ(**other->Get("owner", HandleOf("a")), *file_);
  EXPECT_TRUE(absl::IsNotFound(other->Get("else", HandleOf("a")).status()));
  EXPECT_TRUE(absl::IsNotFound(other->Get("owner", HandleOf("b")).status()));
  EXPECT_TRUE(absl::IsNotFound(other->Get("owner", "*").status()));
  const auto states = other->List("owner").value();
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].handle, HandleOf("a"));
  EXPECT_EQ(states[0].bytes, std::ssize(*file_));
  EXPECT_EQ(states[0].expires_at, stored->expires_at);
  EXPECT_TRUE(other->List("else")->empty());
  EXPECT_TRUE(absl::IsNotFound(other->Remove("else", HandleOf("a"))));
  EXPECT_TRUE(other->Remove("owner", HandleOf("a")).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Get("owner", HandleOf("a")).status()));
  EXPECT_TRUE(store_->List("owner")->empty());
  EXPECT_EQ(metrics_.Value("hits_total"), 1);
  EXPECT_EQ(metrics_.Value("failures_total{operation=\"get\"}"), 0);
}

TEST_F(RedisStoreTest, LeavesNothingBehind) {
  ASSERT_TRUE(Put(*store_, "a").ok());
  ASSERT_TRUE(store_->Put("owner", HandleOf("a"), SmallStateFile(60), seconds(60)).ok());
  EXPECT_EQ(**store_->Get("owner", HandleOf("a")), *SmallStateFile(60));
  EXPECT_EQ(store_->List("owner")->size(), 1u);
  ASSERT_TRUE(store_->Remove("owner", HandleOf("a")).ok());
  const auto until = SteadyClock::now() + seconds(10);
  const auto connection = RedisConnection::Open(redis_->address(), until).value();
  // A script fails where there is a key.
  EXPECT_TRUE(connection
                  ->Call({"EVAL",
                          "if #redis.call('KEYS', '*') > 0 then return "
                          "redis.error_reply('keys') end return 1",
                          "0"},
                         until)
                  .ok());
}

TEST_F(RedisStoreTest, Expires) {
  ASSERT_TRUE(Put(*store_, "a", 1).ok());
  ASSERT_TRUE(Put(*store_, "b", 600).ok());
  const auto until = SteadyClock::now() + seconds(60);
  while (store_->Get("owner", HandleOf("a")).ok() && SteadyClock::now() < until) {
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_TRUE(absl::IsNotFound(store_->Get("owner", HandleOf("a")).status()));
  EXPECT_TRUE(store_->Get("owner", HandleOf("b")).ok());
  EXPECT_EQ(store_->List("owner")->size(), 1u);
}

TEST_F(RedisStoreTest, WhatRedisEvictedInPartIsAMiss) {
  ASSERT_TRUE(Put(*store_, "a").ok());
  ASSERT_TRUE(
      redis_->Call({"EVAL", "return redis.call('DEL', unpack(redis.call('KEYS', '*:1')))", "0"})
          .ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Get("owner", HandleOf("a")).status()));
  EXPECT_EQ(metrics_.Value("damaged_total"), 0);
}

TEST_F(RedisStoreTest, DamageIsAMissAndCounted) {
  ASSERT_TRUE(Put(*store_, "a").ok());
  ASSERT_TRUE(
      redis_
          ->Call(
              {"EVAL", "return redis.call('SETRANGE', redis.call('KEYS', '*:1')[1], 5, 'x?')", "0"})
          .ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Get("owner", HandleOf("a")).status()));
  EXPECT_EQ(metrics_.Value("damaged_total"), 1);
}

TEST_F(RedisStoreTest, AStoppedOneIsUnavailableAndARestartedOneWorks) {
  ASSERT_TRUE(Put(*store_, "a").ok());
  redis_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(store_->Get("owner", HandleOf("a")).status()));
  EXPECT_TRUE(absl::IsUnavailable(Put(*store_, "b")));
  EXPECT_TRUE(absl::IsUnavailable(store_->List("owner").status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->Remove("owner", HandleOf("a"))));
  for (const char* operation : {"get", "put", "list", "remove"}) {
    EXPECT_EQ(metrics_.Value(std::string("failures_total{operation=\"") + operation + "\"}"), 1);
  }
  redis_->Start();
  EXPECT_TRUE(PutSoon(*store_, "c"));
  EXPECT_TRUE(absl::IsNotFound(store_->Get("owner", HandleOf("a")).status()));
}

TEST_F(RedisStoreTest, ARestartIsNotNoticedByAConnectionThatWasIdle) {
  ASSERT_TRUE(Put(*store_, "a").ok());
  redis_->Stop();
  redis_->Start();
  EXPECT_TRUE(Put(*store_, "b").ok());
  EXPECT_EQ(metrics_.Value("failures_total{operation=\"put\"}"), 0);
}

TEST_F(RedisStoreTest, APausedOneIsGivenUp) {
  const auto hasty = Make(milliseconds(200));
  ASSERT_TRUE(PutSoon(*hasty, "a"));
  redis_->Pause();
  EXPECT_TRUE(absl::IsUnavailable(hasty->Get("owner", HandleOf("a")).status()));
  EXPECT_TRUE(absl::IsUnavailable(Put(*hasty, "b")));
  EXPECT_GE(metrics_.Value("failures_total{operation=\"get\"}"), 1);
  redis_->Continue();
  EXPECT_TRUE(PutSoon(*hasty, "c"));
}

TEST_F(RedisStoreTest, AfterAFailureCallsFailAtOnceForAWhile) {
  const auto store = MakeRedisStore(
      {.address = redis_->address(), .time_limit = milliseconds(300), .rest = seconds(3600)},
      metrics_.metrics());
  redis_->Pause();
  EXPECT_TRUE(absl::IsUnavailable(Put(*store, "a")));
  redis_->Continue();
  EXPECT_TRUE(absl::IsUnavailable(Put(*store, "a"))) << "it is not asked again so soon";
}

TEST_F(RedisStoreTest, AFullOneRefusesAndGoesOnReading) {
  ASSERT_TRUE(Put(*store_, "a").ok());
  ASSERT_TRUE(redis_->Call({"CONFIG", "SET", "maxmemory", "1"}).ok());
  const absl::Status full = Put(*store_, "b");
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;
  EXPECT_TRUE(store_->Get("owner", HandleOf("a")).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Get("owner", HandleOf("b")).status()));
  ASSERT_TRUE(redis_->Call({"CONFIG", "SET", "maxmemory", "0"}).ok());
  EXPECT_TRUE(Put(*store_, "b").ok());
}

TEST_F(RedisStoreTest, ThreadsSeeWholeStates) {
  std::atomic<int> wrong = 0;
  const StateBytes other = SmallStateFile(40, 2);
  const auto work = [&](int thread) {
    for (int i = 0; i < 30; ++i) {
      const std::string handle = HandleOf(std::to_string(i % 5));
      const StateBytes& file = thread % 2 == 0 ? file_ : other;
      if (!store_->Put("owner", handle, file, seconds(60)).ok()) ++wrong;
      const auto got = store_->Get("owner", handle);
      const bool whole = got.ok() && (**got == *file_ || **got == *other);
      // A reader may come between a replacement and the chunks that go.
      if (!whole && !absl::IsNotFound(got.status())) ++wrong;
    }
  };
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(metrics_.Value("damaged_total"), 0);
}

}  // namespace
}  // namespace hippodrome::redis_store_test
