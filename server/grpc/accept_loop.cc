#include "server/grpc/accept_loop.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/base/status.h"
#include "server/address.h"

namespace hippodrome {
namespace {

// Between attempts while the system has no descriptor for another connection.
constexpr std::chrono::milliseconds kPause{50};
// Between looks at memory and at what waits in sockets, while there are connections.
constexpr std::chrono::milliseconds kLook{50};
// Of a connection, while memory grows.
constexpr int64_t kMuch = int64_t{1} << 20;
// Accepted before connections that ended are looked after.
constexpr int kAcceptsAtOnce = 64;

std::string SystemError(int error) { return std::strerror(error); }

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(const HostPort& where, const std::string& text) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error =
      getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &list);
  if (error != 0) return InvalidArgument("gRPC address " + text + ": " + gai_strerror(error));
  return Addresses(list);
}

void SetPort(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  }
}

// 0 if it cannot be told.
uint16_t PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// A listening socket. None, with errno set, if that fails.
Descriptor ListenAt(const addrinfo& at) {
  Descriptor socket(::socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return socket;
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // What is accepted inherits it.
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (bind(socket.get(), at.ai_addr, at.ai_addrlen) == 0 && listen(socket.get(), SOMAXCONN) == 0) {
    return socket;
  }
  const int error = errno;
  socket = Descriptor();
  errno = error;
  return socket;
}

std::string ClientAt(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(),
                                host.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? ClientOf(host.data()) : "";
}

bool IsLackOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    const Descriptor old(std::exchange(fd_, other.Release()));
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

int Descriptor::Release() { return std::exchange(fd_, -1); }

absl::StatusOr<std::unique_ptr<AcceptLoop>> AcceptLoop::Listen(const std::string& address,
                                                               const ConnectionLimits& limits,
                                                               ConnectionMetrics& metrics) {
  std::unique_ptr<AcceptLoop> loop(new AcceptLoop(limits, metrics));
  HIPPODROME_RETURN_IF_ERROR(loop->Bind(address));
  HIPPODROME_RETURN_IF_ERROR(loop->MakeQueue());
  return loop;
}

absl::Status AcceptLoop::Bind(const std::string& address) {
  HIPPODROME_ASSIGN_OR_RETURN(HostPort where, ParseAddress(address));
  HIPPODROME_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(where, address));
  int error = 0;
  for (addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    SetPort(at->ai_addr, where.port);
    Descriptor listener = ListenAt(*at);
    if (listener.get() < 0) {
      error = errno;
      continue;
    }
    // Of any free port, all addresses get the same.
    where.port = PortOf(listener.get());
    listeners_.push_back(std::move(listener));
  }
  if (listeners_.empty()) {
    return Unavailable("cannot listen on gRPC address " + address + ": " + SystemError(error));
  }
  address_ = ToText(where);
  return absl::OkStatus();
}

absl::Status AcceptLoop::MakeQueue() {
  queue_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  stop_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bool good = queue_.get() >= 0 && stop_.get() >= 0;
  const auto add = [&](int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    good = good && epoll_ctl(queue_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  add(stop_.get());
  for (const Descriptor& listener : listeners_) add(listener.get());
  if (good) return absl::OkStatus();
  return Unavailable("cannot wait for connections at " + address_ + ": " + SystemError(errno));
}

void AcceptLoop::Start(Take take) {
  take_ = std::move(take);
  thread_ = std::thread([this] { Run(); });
}

void AcceptLoop::Refuse() { eventfd_write(stop_.get(), 1); }

void AcceptLoop::Stop() {
  if (thread_.joinable()) {
    stopping_.store(true);
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  listeners_.clear();
  open_.clear();
  clients_.clear();
  metrics_.SetOpen(0);
}

void AcceptLoop::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = epoll_wait(queue_.get(), events.data(), events.size(), Wait());
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.fd != stop_.get()) {
        Handle(event.data.fd, event.events);
      } else {
        eventfd_t told = 0;
        eventfd_read(stop_.get(), &told);
        // After the reading: it may take a Stop()'s word away with that of Refuse().
        if (stopping_.load()) return;
        listeners_.clear();
      }
    }
    if (paused_ && Clock::now() >= resume_at_) Resume();
    if (!open_.empty() && Clock::now() >= look_at_) Look();
  }
}

int AcceptLoop::Wait() const {
  if (paused_) return static_cast<int>(kPause.count());
  return open_.empty() ? -1 : static_cast<int>(kLook.count());
}

void AcceptLoop::Look() {
  look_at_ = Clock::now() + kLook;
  EndFloods();
  RelievePressure();
}

void AcceptLoop::EndFloods() {
  for (const int fd : std::exchange(heard_, {})) {
    const auto connection = open_.find(fd);
    if (connection == open_.end()) continue;
    if (!limits_.encrypted && limits_.per_address < limits_.all && FloodWaits(fd) &&
        guard_.Saw(connection->second.client, Clock::now())) {
      End(fd);
    }
    Watch(fd, EPOLL_CTL_MOD);
  }
}

// Its hang-up comes as any other's, and is counted there as its end.
void AcceptLoop::End(int fd) {
  shutdown(fd, SHUT_RDWR);
  metrics_.Cut();
}

void AcceptLoop::RelievePressure() {
  using Level = MemoryPressure::Level;
  const Level before = std::exchange(level_, pressure_.Look(PrivateBytes(), Clock::now()));
  if (level_ == Level::kNone) return;
  for (auto& [fd, connection] : open_) {
    if (before == Level::kNone) connection.received = BytesReceived(fd);
    if (level_ != Level::kHigh || BytesReceived(fd) - connection.received < kMuch) continue;
    End(fd);
    connection.received = INT64_MAX;
  }
}

void AcceptLoop::Handle(int fd, uint32_t events) {
  if (IsListener(fd)) {
    AcceptSome(fd);
  } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    Forget(fd);
  } else {
    heard_.push_back(fd);
  }
}

bool AcceptLoop::Watch(int watch, int operation) {
  // Hang-ups and errors are reported always.
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.fd = watch}};
  return epoll_ctl(queue_.get(), operation, watch, &event) == 0;
}

bool AcceptLoop::IsListener(int fd) const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [fd](const Descriptor& listener) { return listener.get() == fd; });
}

void AcceptLoop::AcceptSome(int listener) {
  for (int i = 0; i < kAcceptsAtOnce && !paused_; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    Descriptor socket(
        accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() >= 0) {
      Admit(std::move(socket), ClientAt(peer, size));
    } else if (IsLackOfResources(errno)) {
      Pause();
    } else if (errno == EAGAIN) {
      return;
    }
    // Else the connection was gone before it was accepted.
  }
}

void AcceptLoop::Admit(Descriptor socket, const std::string& client) {
  if (static_cast<int64_t>(open_.size()) >= limits_.all) {
    return metrics_.Refused(ConnectionRefusal::kFull);
  }
  if (guard_.Bars(client, Clock::now())) return metrics_.Refused(ConnectionRefusal::kFlood);
  const auto same = clients_.find(client);
  if (same != clients_.end() && same->second >= limits_.per_address) {
    return metrics_.Refused(ConnectionRefusal::kAddressFull);
  }
  Descriptor watch(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (watch.get() < 0 || !Watch(watch.get(), EPOLL_CTL_ADD)) {
    metrics_.Refused(ConnectionRefusal::kNoDescriptor);
    return Pause();
  }
  ++clients_[client];
  const int key = watch.get();
  open_.emplace(key, Connection{std::move(watch), client});
  metrics_.SetOpen(static_cast<int64_t>(open_.size()));
  take_(socket.Release());
}

void AcceptLoop::Forget(int watch) {
  const auto connection = open_.find(watch);
  if (connection == open_.end()) return;
  const auto client = clients_.find(connection->second.client);
  if (--client->second == 0) clients_.erase(client);
  // Before its number can be given to another.
  epoll_ctl(queue_.get(), EPOLL_CTL_DEL, watch, nullptr);
  open_.erase(connection);
  metrics_.SetOpen(static_cast<int64_t>(open_.size()));
}

void AcceptLoop::Pause() {
  if (!paused_) metrics_.Paused();
  paused_ = true;
  resume_at_ = Clock::now() + kPause;
  WaitForConnections(0);
}

void AcceptLoop::Resume() {
  paused_ = false;
  WaitForConnections(EPOLLIN);
}

void AcceptLoop::WaitForConnections(uint32_t events) {
  for (const Descriptor& listener : listeners_) {
    epoll_event event{.events = events, .data = {.fd = listener.get()}};
    epoll_ctl(queue_.get(), EPOLL_CTL_MOD, listener.get(), &event);
  }
}

}  // namespace hippodrome
