#include "server/http/http_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
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

// What TLS makes of one record.
constexpr size_t kRecordBytes = 16 << 10;
// Enciphered at once: a client that does not read holds no more of an answer twice.
constexpr size_t kTlsPieceBytes = 64 << 10;
// That a client may have TLS say without reading it.
constexpr size_t kMaxTlsOutput = 64 << 10;

}  // namespace

HttpSocket::HttpSocket(net::ip::tcp::socket socket, std::unique_ptr<TlsSession> tls)
    : socket_(std::move(socket)), tls_(std::move(tls)), timer_(socket_.get_executor()) {
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
  if (tls_ != nullptr) co_return co_await ReadTls(most);
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
  bool sent = false;
  if (tls_ != nullptr) {
    sent = co_await SendTls(text);
  } else {
    const auto [error, bytes] = co_await net::async_write(socket_, net::buffer(text), kOutcome);
    sent = !error;
  }
  sending_ = false;
  co_return sent;
}

bool HttpSocket::Poke(std::string_view text) {
  if (sending_) return true;
  if (tls_ != nullptr) {
    if (!PushOutput()) return false;
    return !tls_->output().empty() || (tls_->Write(text) && PushOutput());
  }
  error_code error;
  const size_t sent = socket_.write_some(net::buffer(text.data(), text.size()), error);
  if (error == net::error::would_block) return true;
  // A part would be taken for the beginning of the answer.
  return !error && sent == text.size();
}

void HttpSocket::Shutdown() {
  error_code ignored;
  if (tls_ != nullptr && socket_.is_open()) {
    tls_->End();
    PushOutput();
  }
  socket_.shutdown(net::ip::tcp::socket::shutdown_send, ignored);
}

void HttpSocket::Close() {
  error_code ignored;
  socket_.close(ignored);
}

// ---- TLS ----------------------------------------------------------------------------------------

net::awaitable<error_code> HttpSocket::ReadTls(size_t most) {
  while (true) {
    const bool shaking_hands = !tls_->established();
    const auto space = buffer_.prepare(most);
    size_t bytes = 0;
    const TlsSession::Outcome outcome =
        tls_->Read(static_cast<char*>(space.data()), space.size(), bytes);
    buffer_.commit(bytes);
    // Later, Send() may be at work.
    bool connected = true;
    if (shaking_hands) {
      connected = co_await SendOutput();
    } else {
      connected = PushOutput() && tls_->output().size() <= kMaxTlsOutput;
    }
    if (bytes > 0) co_return error_code();
    ended_ = outcome == TlsSession::Outcome::kEnd;
    if (ended_) co_return net::error::eof;
    if (outcome == TlsSession::Outcome::kFailed && shaking_hands)
      co_return co_await FailHandshake();
    if (outcome == TlsSession::Outcome::kFailed || !connected) {
      co_return net::error::connection_aborted;
    }
    const error_code error = co_await Receive();
    // HTTP says itself where a message ends, so that TLS need not say so.
    ended_ = error == net::error::eof;
    if (error) co_return error;
  }
}

// Were it closed before the client has sent all, a reset would overtake the alert.
net::awaitable<error_code> HttpSocket::FailHandshake() {
  handshake_failed_ = true;
  Shutdown();
  for (error_code error; !error;) {
    error = co_await Receive();
    tls_->Discard();
  }
  co_return net::error::connection_aborted;
}

net::awaitable<error_code> HttpSocket::Receive() {
  while (!expired_) {
    error_code error = ReceiveAtOnce();
    if (error != net::error::would_block) co_return error;
    const auto [failed] = co_await socket_.async_wait(net::ip::tcp::socket::wait_read, kOutcome);
    if (failed) co_return failed;
  }
  co_return net::error::timed_out;
}

// On the stack, so that connections that wait hold nothing.
error_code HttpSocket::ReceiveAtOnce() {
  std::array<char, kRecordBytes> bytes;
  error_code error;
  const size_t received = socket_.read_some(net::buffer(bytes), error);
  tls_->Feed({bytes.data(), received});
  return error;
}

net::awaitable<bool> HttpSocket::SendTls(std::string_view text) {
  bool sent = true;
  for (size_t begin = 0; sent && begin < text.size(); begin += kTlsPieceBytes) {
    sent = tls_->Write(text.substr(begin, kTlsPieceBytes));
    if (sent) sent = co_await SendOutput();
  }
  co_return sent;
}

net::awaitable<bool> HttpSocket::SendOutput() {
  while (!tls_->output().empty()) {
    if (expired_) co_return false;
    const std::string output = std::exchange(tls_->output(), "");
    const auto [error, bytes] = co_await net::async_write(socket_, net::buffer(output), kOutcome);
    if (error) co_return false;
  }
  co_return true;
}

bool HttpSocket::PushOutput() {
  std::string& output = tls_->output();
  error_code error;
  while (!sending_ && !error && !output.empty()) {
    output.erase(0, socket_.write_some(net::buffer(output), error));
  }
  return !error || error == net::error::would_block;
}

}  // namespace hippodrome
