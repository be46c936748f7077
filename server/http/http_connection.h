// One connection of the HTTP server. Includes Boost: for http_*.cc alone.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_CONNECTION_H_
#define HIPPODROME_SERVER_HTTP_HTTP_CONNECTION_H_

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/http/body_budget.h"
#include "server/http/connection_table.h"
#include "server/http/cors.h"
#include "server/http/http_request_reader.h"
#include "server/http/http_socket.h"
#include "server/http/http_types.h"
#include "server/http/large_body_queue.h"
#include "server/metrics/http_metrics.h"
#include "server/options.h"
#include "server/tls/tls_session.h"

namespace hippodrome {

// What the connections of a server share.
struct HttpShared {
  HttpShared(const HttpOptions& o, HttpGate g, HttpHandler h, Metrics& m)
      : options(o),
        gate(std::move(g)),
        handler(std::move(h)),
        cors(o.cors_origins),
        all_metrics(m),
        metrics(m, o.listener),
        bodies(o.max_body_bytes_total, metrics),
        table({o.max_connections, o.max_connections_per_address}) {}

  const HttpOptions options;
  const HttpGate gate;  // may be null
  const HttpHandler handler;
  const Cors cors;  // for refusals; what a handler answers has its headers
  Metrics& all_metrics;
  HttpMetrics metrics;
  BodyBudget bodies;
  ConnectionTable table;
  LargeBodyQueue large;  // runs the handler for large bodies
  std::atomic<int> connections = 0;
  std::atomic<int> busy = 0;  // requests that are being answered
  std::atomic<bool> stopping = false;
};

// All functions run on the executor of the socket, a strand.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // `tls`: null for plain TCP.
  HttpConnection(HttpShared& shared, boost::asio::ip::tcp::socket socket,
                 std::unique_ptr<TlsSession> tls);
  ~HttpConnection();

  // Serves requests until the client leaves, breaks the protocol or a limit, or Close() is called.
  // `place`: in the server's table.
  boost::asio::awaitable<void> Run(std::unique_ptr<ConnectionTable::Place> place);
  void Close();
  boost::asio::any_io_executor executor() { return socket_->executor(); }
  // As HttpRequest::client.
  const std::string& client() const { return client_; }

 private:
  class Notification;  // wakes a waiting coroutine from any thread

  boost::asio::awaitable<void> Refuse(const HttpRefusal& refusal, const std::string& origin);
  boost::asio::awaitable<void> ReadOut();
  // These return false when the connection must end.
  boost::asio::awaitable<bool> Serve(HttpIncoming& incoming);
  boost::asio::awaitable<bool> Answer(const HttpFraming& framing, HttpReply reply);
  boost::asio::awaitable<bool> Write(const HttpFraming& framing, HttpResponse response);
  boost::asio::awaitable<bool> WriteHead(const HttpFraming& framing, const HttpResponse& response);
  boost::asio::awaitable<bool> WriteChunk(const HttpFraming& framing, std::string data);
  boost::asio::awaitable<bool> WriteEnd(const HttpFraming& framing);
  boost::asio::awaitable<bool> Send(std::string text);
  // Nothing where the client left before the handler began, or while it ran.
  boost::asio::awaitable<std::optional<HttpReply>> Handle(HttpIncoming& incoming);
  // Does the work; returns early, with nothing, when the client disconnects.
  boost::asio::awaitable<std::optional<bool>> Work(const HttpFraming& framing, HttpReply reply);
  boost::asio::awaitable<bool> Advance(const HttpFraming& framing, HttpReply reply);
  // Returns when the client has gone. `poke`: what may be sent to one who sends no more, to find
  // out whether it is there; empty: it is taken as gone.
  boost::asio::awaitable<void> AwaitDisconnect(std::string poke);

  HttpShared& shared_;
  const std::shared_ptr<HttpSocket> socket_;
  const std::string client_;
  CallRecord* call_ = nullptr;  // of the request at hand
  std::unique_ptr<ConnectionTable::Place> place_;
  BodyReservation ahead_;     // for what the client sends while its answer is made
  bool half_closed_ = false;  // the client sends no more
  bool answered_ = false;     // the last byte of the answer is on its way
  bool closed_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_CONNECTION_H_
