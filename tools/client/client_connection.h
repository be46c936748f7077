// A connection to an HTTP server, plain or over TLS. Includes Boost.
#ifndef HIPPODROME_TOOLS_CLIENT_CLIENT_CONNECTION_H_
#define HIPPODROME_TOOLS_CLIENT_CLIENT_CONNECTION_H_

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/address.h"
#include "tools/client/client_security.h"

namespace hippodrome {

// A server, and what all connections to it share. Thread-safe.
class HttpEndpoint {
 public:
  // `address`: HOST:PORT. Errors: kInvalidArgument, also for certificates that cannot be used.
  static absl::StatusOr<std::shared_ptr<HttpEndpoint>> Make(const std::string& address,
                                                            const ClientSecurity& security);

  const HostPort& address() const { return address_; }
  // Of all requests: the host, and the API key if there is one.
  const std::string& fields() const { return fields_; }
  // Null: no TLS.
  boost::asio::ssl::context* tls() { return tls_ ? &*tls_ : nullptr; }

 private:
  HttpEndpoint() = default;

  HostPort address_;
  std::string fields_;
  std::optional<boost::asio::ssl::context> tls_;
};

struct ClientCall {
  std::string method = "GET";
  std::string path;
  std::string body;  // JSON; empty: none
  // All of the answer, from the first byte of connecting.
  std::chrono::steady_clock::duration timeout = std::chrono::seconds(10);
  uint64_t most_bytes = uint64_t{64} << 20;  // of the answer's body
  // Sees the answer's body piece by piece, as it comes.
  std::function<void(int status, std::string_view piece)> on_body;
};

struct ClientAnswer {
  int status = 0;
  int64_t retry_after = 0;  // seconds, in [0, 3600]; 0: the server does not say
};

// One connection, which is kept between calls where the server allows it. All functions run on the
// executor's thread. Held by shared_ptr.
class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  ClientConnection(const boost::asio::any_io_executor& executor,
                   std::shared_ptr<HttpEndpoint> endpoint);

  // Connects if it has to, sends, and reads the whole answer. A kept connection that turns out to
  // be closed is replaced once. `call` must live until this returns. One call at a time. Errors:
  // kUnavailable (no connection), kUnauthenticated (TLS failed), kAborted (the connection broke
  // before the answer's end), kDeadlineExceeded, kDataLoss (the answer is not HTTP, or too long).
  boost::asio::awaitable<absl::StatusOr<ClientAnswer>> Call(const ClientCall& call);

  // A GET: the body of an answer with status 200. Errors: as Call(), and kFailedPrecondition for
  // another status, with the first line of its body.
  boost::asio::awaitable<absl::StatusOr<std::string>> Get(std::string path);

 private:
  boost::asio::awaitable<absl::Status> Connect();
  boost::asio::awaitable<absl::StatusOr<ClientAnswer>> Exchange(const ClientCall& call);
  boost::asio::awaitable<boost::system::error_code> Write(const std::string& text);
  boost::asio::awaitable<boost::system::error_code> ReadMore();
  void StartTimer(std::chrono::steady_clock::duration timeout);
  void Close();
  // What a failed operation means.
  absl::Status Broken(const std::string& doing, const boost::system::error_code& error) const;

  std::shared_ptr<HttpEndpoint> endpoint_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::ip::tcp::resolver resolver_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer input_;
  int64_t calls_ = 0;
  bool expired_ = false;
  bool answering_ = false;  // something of the answer has come
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CLIENT_CLIENT_CONNECTION_H_
