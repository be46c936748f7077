// Reads requests within limits. Includes Boost: for http_*.cc alone.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_REQUEST_READER_H_
#define HIPPODROME_SERVER_HTTP_HTTP_REQUEST_READER_H_

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/calls/call_record.h"
#include "server/http/body_budget.h"
#include "server/http/connection_table.h"
#include "server/http/http_head.h"
#include "server/http/http_socket.h"
#include "server/http/http_types.h"
#include "server/options.h"

namespace hippodrome {

// How an answer is framed.
struct HttpFraming {
  bool keep_alive = false;
  bool chunked = true;     // may be; false for HTTP/1.0
  bool head_only = false;  // the answer to HEAD has no body
};

struct HttpIncoming {
  HttpIncoming(HttpRequest r, BodyReservation m) : request(std::move(r)), memory(std::move(m)) {}

  HttpRequest request;
  BodyReservation memory;
  HttpFraming framing;
  bool unread = false;  // the body was left where it is: the connection must end with the answer
};

// A request, or why there is none; neither where the client has gone or said nothing in time.
struct HttpReading {
  std::unique_ptr<HttpIncoming> incoming;
  std::optional<HttpRefusal> refusal;
  std::string origin;  // of a request that is refused, as far as it came
  bool cut = false;    // the client left within a request
  // From the first byte of a request on; null where none came.
  std::unique_ptr<CallRecord> call;
};

// Of one connection. All functions run on the strand of the socket.
class HttpRequestReader {
 public:
  // What it is given must outlive it. `gate` may be null. `client`: as HttpRequest::client.
  HttpRequestReader(const HttpOptions& options, const HttpGate& gate, const std::string& client,
                    BodyBudget& budget, HttpSocket& socket, ConnectionTable::Place& place,
                    Metrics& metrics)
      : options_(options),
        gate_(gate),
        client_(client),
        budget_(budget),
        socket_(socket),
        place_(place),
        metrics_(metrics) {}

  // The next request, the `first` of its connection or a later one.
  boost::asio::awaitable<HttpReading> Read(bool first);

 private:
  using Outcome = std::optional<HttpRefusal>;

  boost::asio::awaitable<bool> AwaitFirstByte(bool first);
  boost::asio::awaitable<Outcome> ReadHead(RequestHead& head);
  // Whether nobody needs the body, and reading it only to find its end is not worth it.
  static bool LeavesBody(const RequestHead& head, const HttpRequest& request);
  // A body of at most `limit` bytes.
  boost::asio::awaitable<Outcome> ReadBody(const RequestHead& head, int64_t limit,
                                           HttpIncoming& incoming);
  boost::asio::awaitable<Outcome> ReadBytes(int64_t length, HttpIncoming& incoming);
  boost::asio::awaitable<Outcome> ReadChunks(int64_t limit, HttpIncoming& incoming);
  // Reads more into the socket's input. An outcome, or `gone_`, where there is no more.
  boost::asio::awaitable<Outcome> ReadMore();
  // Adds to a body of at most `most` bytes.
  Outcome Append(std::string_view data, int64_t most, HttpIncoming& incoming);
  // Bytes that the body of a request may have.
  int64_t Limit(const HttpRequest& request) const;
  static HttpRefusal TooLarge(int64_t limit);

  const HttpOptions& options_;
  const HttpGate& gate_;
  const std::string& client_;
  BodyBudget& budget_;
  HttpSocket& socket_;
  ConnectionTable::Place& place_;
  Metrics& metrics_;
  bool gone_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_REQUEST_READER_H_
