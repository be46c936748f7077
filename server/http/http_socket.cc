#include "server/http/http_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "server/address.h"

namespace hippodrome {

namespace net = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kOutcome = net::as_tuple(net::use_awaitable);

// What the system holds for a client that does not read, beside what is on its way. Without a bound
// it takes 4 MiB, which nobody counts.
constexpr int kMaxUnsentBytes = 256 << 10;

}  // namespace

HttpSocket::HttpSocket(net::ip::tcp::socket socket)
    : socket_(std::move(socket)), timer_(socket_.get_executor()) {
  error_code ignored;
  socket_.set_option(net::ip::tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMaxUnsentBytes,
             sizeof(kMaxUnsentBytes));
}

std::string HttpSocket::Client() const {
  error_code error;
  const net::ip::tcp::endpoint peer = socket_.remote_endpoint(error);
  return error ? "" : ClientOf(peer.address().to_string());
}

// ---- The deadline -------------------------------------------------------------------------------

// The timer is left to run where it fires before the deadline: it is then set anew. So a stream
// that moves its deadline with each token leaves the timer alone.
void HttpSocket::ExpireAfter(Clock::duration duration) {
  expired_ = false;
  deadline_ = Clock::now() + duration;
  if (!timer_runs_ || timer_.expiry() > deadline_) StartTimer();
}

void HttpSocket::ExpireNever() {
  expired_ = false;
  deadline_ = Clock::time_point::max();
}

void HttpSocket::StartTimer() {
  timer_runs_ = true;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (self != nullptr && !error) self->OnTimer();
  });
}

void HttpSocket::OnTimer() {
  timer_runs_ = false;
  if (deadline_ == Clock::time_point::max()) return;
  if (Clock::now() < deadline_) {
    StartTimer();
    return;
  }
  expired_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

// ---- Input --------------------------------------------------------------------------------------

std::string_view HttpSocket::input() const {
  return {static_cast<const char*>(buffer_.data().data()), buffer_.size()};
}

net::awaitable<error_code> HttpSocket::Read(size_t most) {
  if (expired_) co_return net::error::timed_out;
  // Boost tells of an end once: the next read would wait for something new.
  if (ended_) co_return net::error::eof;
  const auto [error, bytes] = co_await socket_.async_read_some(buffer_.prepare(most), kOutcome);
  buffer_.commit(bytes);
  ended_ = error == net::error::eof;
  co_return error;
}

net::awaitable<void> HttpSocket::AwaitReset() {
  co_await socket_.async_wait(net::ip::tcp::socket::wait_error, kOutcome);
}

// ---- Output -------------------------------------------------------------------------------------

net::awaitable<bool> HttpSocket::Send(std::string text) {
  if (expired_) co_return false;
  sending_ = true;
  const auto [error, bytes] = co_await net::async_write(socket_, net::buffer(text), kOutcome);
  sending_ = false;
  co_return !error;
}

bool HttpSocket::Poke(std::string_view text) {
  if (sending_) return true;
  error_code error;
  const size_t sent = socket_.write_some(net::buffer(text.data(), text.size()), error);
  if (error == net::error::would_block) return true;
  // A part would be taken for the beginning of the answer.
  return !error && sent == text.size();
}

void HttpSocket::Shutdown() {
  error_code ignored;
  socket_.shutdown(net::ip::tcp::socket::shutdown_send, ignored);
}

void HttpSocket::Close() {
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace hippodrome
