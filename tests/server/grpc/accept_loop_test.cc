#include "server/grpc/accept_loop.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "server/address.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::accept_loop_test {
namespace {

// Lets no more than `spare` descriptors be opened while it lives, and then some.
class FewDescriptors {
 public:
  explicit FewDescriptors(size_t spare) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &few);
    while (true) {
      Descriptor taken(dup(STDERR_FILENO));
      if (taken.get() < 0) break;
      taken_.push_back(std::move(taken));
    }
    taken_.resize(taken_.size() - spare);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
  std::vector<Descriptor> taken_;
};

class AcceptLoopTest : public testing::Test {
 protected:
  void Serve(const ConnectionLimits& limits) {
    loop_ = AcceptLoop::Listen("127.0.0.1:0", limits, connection_metrics_).value();
    loop_->Start([this](int fd) {
      std::lock_guard lock(mutex_);
      taken_.emplace_back(fd);
    });
  }

  static Descriptor NewSocket() { return Descriptor(socket(AF_INET, SOCK_STREAM, 0)); }

  void Connect(const Descriptor& socket, const char* from = "127.0.0.1") {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, from, &address.sin_addr);
    ASSERT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    address.sin_port = htons(ParseAddress(loop_->address())->port);
    ASSERT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }

  Descriptor Connected(const char* from = "127.0.0.1") {
    Descriptor socket = NewSocket();
    Connect(socket, from);
    return socket;
  }

  size_t Taken() {
    std::lock_guard lock(mutex_);
    return taken_.size();
  }

  // A line of the metrics.
  bool Shows(const std::string& line) {
    return WaitUntil([&] { return metrics_.Text().find(line + "\n") != std::string::npos; });
  }

  static bool IsClosed(const Descriptor& socket) {
    char byte;
    return recv(socket.get(), &byte, 1, 0) <= 0;
  }

  Metrics metrics_;
  ConnectionMetrics connection_metrics_{metrics_.registry()};
  std::mutex mutex_;  // guards taken_
  std::vector<Descriptor> taken_;
  std::unique_ptr<AcceptLoop> loop_;
};

TEST_F(AcceptLoopTest, HandsOverConnectionsAndCountsThem) {
  Serve({.all = 8, .per_address = 8});
  const Descriptor a = Connected(), b = Connected();
  ASSERT_TRUE(WaitUntil([&] { return Taken() == 2; }));
  EXPECT_TRUE(Shows("hippodrome_grpc_connections 2"));
  EXPECT_NE(fcntl(taken_[0].get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(taken_[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(send(taken_[0].get(), "x", 1, 0), 1);
  char byte = 0;
  EXPECT_EQ(recv(a.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_F(AcceptLoopTest, AConnectionCountsUntilItIsShutDownHere) {
  Serve({.all = 8, .per_address = 8});
  {
    const Descriptor socket = Connected();
    ASSERT_TRUE(WaitUntil([&] { return Taken() == 1; }));
  }
  // That the peer sends no more is no end.
  char byte;
  EXPECT_TRUE(WaitUntil([&] { return recv(taken_[0].get(), &byte, 1, 0) == 0; }));
  EXPECT_TRUE(Shows("hippodrome_grpc_connections 1"));
  shutdown(taken_[0].get(), SHUT_RDWR);
  EXPECT_TRUE(Shows("hippodrome_grpc_connections 0"));
}

TEST_F(AcceptLoopTest, AConnectionThatThePeerResetsIsGone) {
  Serve({.all = 8, .per_address = 8});
  {
    const Descriptor socket = Connected();
    ASSERT_TRUE(WaitUntil([&] { return Taken() == 1; }));
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }
  EXPECT_TRUE(Shows("hippodrome_grpc_connections 0"));
}

TEST_F(AcceptLoopTest, ClosesWhatExceedsTheLimits) {
  Serve({.all = 3, .per_address = 2});
  const Descriptor a = Connected(), b = Connected(), third = Connected();
  EXPECT_TRUE(IsClosed(third));
  EXPECT_TRUE(Shows(R"(hippodrome_grpc_connections_refused_total{reason="address_full"} 1)"));
  const Descriptor other = Connected("127.0.0.2");
  ASSERT_TRUE(WaitUntil([&] { return Taken() == 3; }));
  const Descriptor last = Connected("127.0.0.3");
  EXPECT_TRUE(IsClosed(last));
  EXPECT_TRUE(Shows(R"(hippodrome_grpc_connections_refused_total{reason="full"} 1)"));

  // Room that is given back is taken again.
  shutdown(taken_[0].get(), SHUT_RDWR);
  EXPECT_TRUE(Shows("hippodrome_grpc_connections 2"));
  const Descriptor again = Connected();
  EXPECT_TRUE(WaitUntil([&] { return Taken() == 4; }));
}

TEST_F(AcceptLoopTest, GoesOnWhenThereAreDescriptorsAgain) {
  Serve({.all = 100, .per_address = 100});
  std::vector<Descriptor> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(NewSocket());
  {
    const FewDescriptors none(0);
    for (const Descriptor& client : clients) Connect(client);
    EXPECT_TRUE(Shows("hippodrome_grpc_accept_pauses_total 1"));
    EXPECT_EQ(Taken(), 0u);
  }
  EXPECT_TRUE(WaitUntil([&] { return Taken() == 4; }));
}

TEST_F(AcceptLoopTest, RefusesAConnectionThatGetsTheLastDescriptor) {
  Serve({.all = 100, .per_address = 100});
  const Descriptor first = NewSocket(), second = NewSocket();
  {
    const FewDescriptors one(1);
    Connect(first);
    EXPECT_TRUE(IsClosed(first));
  }
  EXPECT_TRUE(Shows(R"(hippodrome_grpc_connections_refused_total{reason="no_descriptor"} 1)"));
  EXPECT_EQ(Taken(), 0u);
  Connect(second);
  EXPECT_TRUE(WaitUntil([&] { return Taken() == 1; }));
}

TEST_F(AcceptLoopTest, WhoBringsMuchWhileMemoryGrowsIsCut) {
  constexpr int64_t kGrowth = int64_t{128} << 20;
  Serve({.all = 8, .per_address = 8, .memory_growth = kGrowth});
  const Descriptor quiet = Connected(), loud = Connected();
  ASSERT_TRUE(WaitUntil([&] { return Taken() == 2; }));
  // What `loud` sends is read, so that it can go on.
  std::thread reader([&] {
    for (size_t i = 0;; i = (i + 1) % 2) {
      std::vector<char> bytes(1 << 16);
      const ssize_t count = recv(taken_[i].get(), bytes.data(), bytes.size(), 0);
      if (count == 0 || (count < 0 && errno != EAGAIN)) return;
    }
  });
  std::vector<std::vector<char>> memory;
  const std::vector<char> much(1 << 16);
  // Until it is cut.
  for (int i = 0; send(loud.get(), much.data(), much.size(), MSG_NOSIGNAL) > 0; ++i) {
    if (i % 64 == 0 && memory.size() < 16) memory.emplace_back(kGrowth / 8, 1);
  }
  reader.join();
  EXPECT_TRUE(Shows("hippodrome_grpc_connections_cut_total 1"));
  EXPECT_TRUE(Shows("hippodrome_grpc_connections 1"));
  EXPECT_EQ(send(quiet.get(), "x", 1, MSG_NOSIGNAL), 1);
}

// Until the connection ends, or so many were sent.
bool SendPings(const Descriptor& to, int times) {
  std::string pings;
  for (int i = 0; i < 256; ++i) pings += std::string("\0\0\10\6\0\0\0\0\0PingPong", 17);
  for (int i = 0; i < times; ++i) {
    if (send(to.get(), pings.data(), pings.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
        errno != EAGAIN) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST_F(AcceptLoopTest, WhoFloodsIsCutAndBarred) {
  Serve({.all = 8, .per_address = 4});
  const Descriptor loud = Connected("127.0.0.2"), quiet = Connected();
  ASSERT_TRUE(WaitUntil([&] { return Taken() == 2; }));
  EXPECT_TRUE(WaitUntil([&] { return !SendPings(loud, 1); }));
  EXPECT_TRUE(Shows("hippodrome_grpc_connections_cut_total 1"));
  EXPECT_TRUE(Shows("hippodrome_grpc_connections 1"));
  EXPECT_TRUE(IsClosed(Connected("127.0.0.2")));
  EXPECT_TRUE(Shows(R"(hippodrome_grpc_connections_refused_total{reason="flood"} 1)"));
  EXPECT_EQ(send(quiet.get(), "x", 1, MSG_NOSIGNAL), 1);
  const Descriptor other = Connected();
  EXPECT_TRUE(WaitUntil([&] { return Taken() == 3; }));
}

TEST_F(AcceptLoopTest, WhereAddressesDoNotTellClientsApartNobodyIsBarred) {
  Serve({.all = 8, .per_address = 8});
  const Descriptor proxy = Connected();
  EXPECT_TRUE(SendPings(proxy, 500));
  EXPECT_TRUE(Shows("hippodrome_grpc_connections_cut_total 0"));
}

TEST_F(AcceptLoopTest, RefusesNewcomersAndWatchesOthers) {
  Serve({.all = 8, .per_address = 8});
  const Descriptor before = Connected();
  ASSERT_TRUE(WaitUntil([&] { return Taken() == 1; }));
  loop_->Refuse();
  loop_->Refuse();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  address.sin_port = htons(ParseAddress(loop_->address())->port);
  EXPECT_TRUE(WaitUntil([&] {
    const Descriptor late = NewSocket();
    return connect(late.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 &&
           errno == ECONNREFUSED;
  }));
  ASSERT_EQ(send(taken_[0].get(), "x", 1, 0), 1);
  char byte = 0;
  EXPECT_EQ(recv(before.get(), &byte, 1, 0), 1);
  {
    // Those too that came before the loop knew.
    std::lock_guard lock(mutex_);
    for (const Descriptor& taken : taken_) shutdown(taken.get(), SHUT_RDWR);
  }
  EXPECT_TRUE(Shows("hippodrome_grpc_connections 0"));
}

TEST_F(AcceptLoopTest, StopsRightAfterItRefuses) {
  for (int i = 0; i < 4000; ++i) {
    Serve({});
    loop_->Refuse();
    // About as long as it takes until the loop wakes.
    const auto stop_at = std::chrono::steady_clock::now() + std::chrono::nanoseconds(i % 500 * 100);
    while (std::chrono::steady_clock::now() < stop_at) {
    }
    loop_->Stop();
  }
}

TEST_F(AcceptLoopTest, StopLeavesConnectionsToTheirOwner) {
  Serve({.all = 8, .per_address = 8});
  const Descriptor socket = Connected();
  ASSERT_TRUE(WaitUntil([&] { return Taken() == 1; }));
  loop_->Stop();
  loop_->Stop();
  ASSERT_EQ(send(taken_[0].get(), "x", 1, 0), 1);
  char byte = 0;
  EXPECT_EQ(recv(socket.get(), &byte, 1, 0), 1);
}

TEST_F(AcceptLoopTest, AddressesThatCannotBeUsed) {
  const ConnectionLimits limits{.all = 1, .per_address = 1};
  const auto listen = [&](const std::string& address) {
    return AcceptLoop::Listen(address, limits, connection_metrics_).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(listen("here")));
  EXPECT_TRUE(absl::IsInvalidArgument(listen("no-such-host.invalid:1")));
  Serve(limits);
  const absl::Status taken = listen(loop_->address());
  EXPECT_TRUE(absl::IsUnavailable(taken));
  EXPECT_NE(Message(taken).find(loop_->address() + ": Address already in use"), std::string::npos)
      << Message(taken);
}

}  // namespace
}  // namespace hippodrome::accept_loop_test
