// One connection of the HTTP server. Includes Boost: for http_*.cc alone.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_CONNECTION_H_
#define HIPPODROME_SERVER_HTTP_HTTP_CONNECTION_H_

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <memory>
#include <optional>
#include <string>

#include "server/http/http_types.h"
#include "server/options.h"

namespace hippodrome {

// What the connections of a server share.
struct HttpShared {
  HttpOptions options;
  HttpHandler handler;
  boost::asio::thread_pool slow{1};  // runs the handler for large bodies
  std::atomic<int> connections = 0;
  std::atomic<int> busy = 0;  // requests that are being answered
  std::atomic<bool> stopping = false;
};

// All functions run on the executor of the stream, a strand.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpShared& shared, boost::asio::ip::tcp::socket socket);
  ~HttpConnection();

  // Serves requests until the client leaves, breaks the protocol or a limit, or Close() is called.
  boost::asio::awaitable<void> Run();
  void Close();
  boost::asio::any_io_executor executor() { return stream_.get_executor(); }

 private:
  struct Incoming;     // a request with what the protocol says about it
  class Notification;  // wakes a waiting coroutine from any thread

  boost::asio::awaitable<std::optional<Incoming>> Read();
  boost::asio::awaitable<bool> AwaitFirstByte();
  boost::asio::awaitable<void> Refuse(const boost::system::error_code& error);
  boost::asio::awaitable<HttpReply> Handle(HttpRequest request);
  // These return false when the connection must end.
  boost::asio::awaitable<bool> Answer(const Incoming& incoming, HttpReply reply);
  boost::asio::awaitable<bool> Finish(const Incoming& incoming, HttpReply reply);
  boost::asio::awaitable<bool> Write(const Incoming& incoming, HttpResponse response);
  boost::asio::awaitable<bool> WriteHead(const Incoming& incoming, const HttpResponse& response);
  boost::asio::awaitable<bool> WriteChunk(const Incoming& incoming, std::string data);
  boost::asio::awaitable<bool> WriteEnd(const Incoming& incoming);
  boost::asio::awaitable<bool> Send(std::string text);
  // Does the work; returns early, with nothing, when the client disconnects.
  boost::asio::awaitable<std::optional<bool>> Work(const Incoming& incoming, HttpReply reply);
  boost::asio::awaitable<void> AwaitDisconnect();

  HttpShared& shared_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  const std::string client_;
  bool closed_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_CONNECTION_H_
