// HTTP without a library: what the routes see of it.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_TYPES_H_
#define HIPPODROME_SERVER_HTTP_HTTP_TYPES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/access/access_control.h"
#include "server/batching/caller.h"
#include "server/calls/call_record.h"
#include "server/status_map.h"

namespace hippodrome {

struct HttpRoute;

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;  // further ones
  // For the record of the call: so far, and whether a limit of its client's own refuses it.
  CallTokens tokens;
  bool limited = false;
};

// What an answer says of its own call, so that the same call has the same answer to the byte.
struct AnswerStamp {
  std::string id;
  int64_t created = 0;  // Unix seconds
};

struct HttpRequest {
  std::string method;                          // "GET"
  std::string path;                            // as sent, without the query
  std::string query;                           // behind '?', as sent
  std::map<std::string, std::string> headers;  // names in lower case; several joined by ", "
  std::string body;
  std::string client;  // where it comes from, as ClientOf() says of the peer's address
  // Set where the request is routed.
  bool routed = false;
  const HttpRoute* route = nullptr;
  std::map<std::string, std::string> parameters;  // decoded, by their names in the route's pattern
  std::shared_ptr<CallPermit> permit;             // of its API key; null where none is needed
  std::optional<HttpResponse> answer;             // known already: no route may see the request
  bool background = false;                        // as Caller::background
  // Nothing: its answer has an id at random, and says when it was made and what was cached.
  std::optional<AnswerStamp> stamp;

  // Who asks.
  Caller caller() const {
    const std::string& name = permit == nullptr ? client : permit->key();
    Caller caller(Api::kHttp, name, Caller::Clock::time_point::max(), permit);
    if (permit != nullptr) caller.key = permit->key();
    caller.background = background;
    return caller;
  }
};

// The work behind an answer that takes time. Destroyed as soon as the client has gone, which gives
// up the work. Its functions are called on one thread at a time.
class HttpWork {
 public:
  virtual ~HttpWork() = default;
  // `wake` may be called on any thread, until this object is destroyed, when Advance() is worth
  // calling; at once if it is now. It is cheap.
  virtual void OnUpdate(std::function<void()> wake) = 0;
  // Moves on. True when `response` is complete. A streamed response has had its head sent: what is
  // in `response.body` goes out after each call, and `response.status` is for the record alone.
  virtual bool Advance(HttpResponse& response) = 0;
};

// A response, or the work that makes it.
struct HttpReply {
  HttpResponse response;
  std::unique_ptr<HttpWork> work;  // null: `response` is complete
  bool streamed = false;           // the head is sent before the work is done
  // Sent whenever a streamed response has had nothing to say for HttpOptions::filler_interval, so
  // that nobody on the way takes the connection for dead. Empty: nothing is.
  std::string filler;
  // For the record of the call, see CallRecord. They live as long as the server.
  const char* method = nullptr;  // null where there is no route
  const char* route = kOtherRoute;
  std::string model, key;
  bool probe = false;
  std::shared_ptr<CallPermit> permit;  // given back when the work is done; null: none
  // Makes the reply where it blocks nobody, for it may wait for a disk or for another server. The
  // request lives until it has run; all else here is for that reply to say.
  std::function<HttpReply()> later;
};

struct HttpRoute {
  const char* pattern;  // a path, with {name} for segments that vary; in metrics it is the route
  const char* method;
  std::function<HttpReply(const HttpRequest& request)> handle;
  ErrorShape errors = ErrorShape::kOpenAi;
  Access access = Access::kKey;
  int64_t max_body_bytes = 0;  // 0: HttpOptions::max_body_bytes
};

// Routes a request, but for its body, which has not come yet: where its answer is known without,
// a large body is never read. Must be cheap. Thread-safe.
using HttpGate = std::function<void(HttpRequest& head)>;

// Must be cheap, unless the body is large: then it runs where it blocks nobody. Thread-safe.
using HttpHandler = std::function<HttpReply(HttpRequest request)>;

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_TYPES_H_
