// A socket of the HTTP server. Includes Boost: for http_*.cc alone.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_SOCKET_H_
#define HIPPODROME_SERVER_HTTP_HTTP_SOCKET_H_

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/tls/tls_session.h"

namespace hippodrome {

// Holds what was read and not used, and has one deadline for whatever waits. All functions run on
// the executor of the socket, a strand. Held by shared_ptr.
//
// With TLS it keeps all that is said here. The first Read() sees to the handshake, within its
// deadline; nothing may be sent before it.
class HttpSocket : public std::enable_shared_from_this<HttpSocket> {
 public:
  // `tls`: null for plain TCP.
  HttpSocket(boost::asio::ip::tcp::socket socket, std::unique_ptr<TlsSession> tls);

  boost::asio::any_io_executor executor() { return socket_.get_executor(); }

  // Who is connected, as ClientOf() says; "" once the peer has gone.
  std::string Client() const;

  // What waits then ends with an error, and so does all that begins later, until a new deadline.
  void ExpireAfter(std::chrono::steady_clock::duration duration);
  void ExpireNever();
  bool expired() const { return expired_; }

  // What has been read and not been consumed. Valid until the next Read() or ReleaseMemory().
  std::string_view input() const;
  void Consume(size_t bytes) { buffer_.consume(bytes); }
  // Of the input, beyond what it holds.
  void ReleaseMemory() { buffer_.shrink_to_fit(); }
  // Reads more, up to `most` bytes. end_of_file where the client sends no more.
  boost::asio::awaitable<boost::system::error_code> Read(size_t most);
  // The client was told why, with an alert, and has had time to read it.
  bool handshake_failed() const { return handshake_failed_; }

  // All of it; false where the client has gone or the time is over.
  boost::asio::awaitable<bool> Send(std::string text);
  // Sends a few bytes without waiting, if that can be and Send() is not at work. False where the
  // client has gone.
  bool Poke(std::string_view text);
  // Waits for the client to reset the connection.
  boost::asio::awaitable<void> AwaitReset();

  // Says that no more is sent.
  void Shutdown();
  void Close();

 private:
  void StartTimer();
  void OnTimer();
  // With TLS.
  boost::asio::awaitable<boost::system::error_code> ReadTls(size_t most);
  boost::asio::awaitable<boost::system::error_code> FailHandshake();
  // Feeds the session with what has come, or waits for it.
  boost::asio::awaitable<boost::system::error_code> Receive();
  boost::system::error_code ReceiveAtOnce();
  boost::asio::awaitable<bool> SendTls(std::string_view text);
  // Sends what the session has to send: all of it, or what can be sent without waiting, unless
  // Send() is at work. False where the client has gone.
  boost::asio::awaitable<bool> SendOutput();
  bool PushOutput();

  boost::asio::ip::tcp::socket socket_;
  const std::unique_ptr<TlsSession> tls_;
  boost::beast::flat_buffer buffer_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  bool timer_runs_ = false;
  bool expired_ = false;
  bool sending_ = false;
  bool ended_ = false;  // the client sends no more
  bool handshake_failed_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_SOCKET_H_
