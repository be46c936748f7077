#include "server/http/http_connection.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "server/address.h"
#include "server/http/http_replies.h"

namespace hippodrome {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

namespace {

constexpr auto kResult = net::as_tuple(net::use_awaitable);

// Tokenising more than this may take longer than other clients should wait.
constexpr size_t kLargeBody = 64 << 10;
// Of what a client sends ahead while its answer is made, and room for a request's headers.
constexpr size_t kReadAhead = 64 << 10;

http::response_header<> Head(const HttpResponse& response, bool keep_alive) {
  http::response_header<> head;
  head.version(11);
  head.result(static_cast<unsigned>(response.status));
  head.set(http::field::content_type, response.content_type);
  head.set(http::field::connection, keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : response.headers) head.set(name, value);
  return head;
}

// As it is sent. Beast's serializers are left out: each message type costs seconds to compile.
std::string Text(const http::response_header<>& head) {
  std::ostringstream text;
  text << head;
  return text.str();
}

void SetTarget(const std::string& target, HttpRequest& request) {
  const size_t query = target.find('?');
  request.path = target.substr(0, query);
  if (query != std::string::npos) request.query = target.substr(query + 1);
}

// "" once the peer has gone.
std::string Client(const net::ip::tcp::socket& socket) {
  error_code error;
  const net::ip::tcp::endpoint peer = socket.remote_endpoint(error);
  return error ? "" : ClientOf(peer.address().to_string());
}

// A request that is being answered, however that ends.
class Busy {
 public:
  explicit Busy(std::atomic<int>& count) : count_(count) { count_.fetch_add(1); }
  ~Busy() { count_.fetch_sub(1); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

struct HttpConnection::Incoming {
  HttpRequest request;
  bool keep_alive = false;
  bool chunked = true;     // false for HTTP/1.0
  bool head_only = false;  // a HEAD request: its answer has no body
};

class HttpConnection::Notification : public std::enable_shared_from_this<Notification> {
 public:
  explicit Notification(const net::any_io_executor& strand) : timer_(strand) {}

  // On any thread.
  void Notify() {
    net::post(timer_.get_executor(), [self = shared_from_this()] {
      self->notified_ = true;
      self->timer_.cancel();
    });
  }
  // On the strand. True at once if it was notified since the last call, or when that happens before
  // `end`; else false then.
  net::awaitable<bool> Await(net::steady_timer::time_point end) {
    while (!notified_ && net::steady_timer::clock_type::now() < end) {
      timer_.expires_at(end);
      co_await timer_.async_wait(kResult);
    }
    co_return std::exchange(notified_, false);
  }

 private:
  net::steady_timer timer_;
  bool notified_ = false;
};

HttpConnection::HttpConnection(HttpShared& shared, net::ip::tcp::socket socket)
    : shared_(shared),
      stream_(std::move(socket)),
      buffer_(kReadAhead + static_cast<size_t>(shared.options.max_header_bytes)),
      client_(Client(stream_.socket())) {
  shared_.connections.fetch_add(1);
}

HttpConnection::~HttpConnection() { shared_.connections.fetch_sub(1); }

void HttpConnection::Close() {
  closed_ = true;
  error_code ignored;
  stream_.socket().close(ignored);
}

net::awaitable<void> HttpConnection::Run() {
  const auto self = shared_from_this();
  error_code ignored;
  stream_.socket().set_option(net::ip::tcp::no_delay(true), ignored);
  while (!closed_ && !shared_.stopping) {
    std::optional<Incoming> incoming = co_await Read();
    if (!incoming) break;
    const Busy busy(shared_.busy);
    HttpReply reply = co_await Handle(std::move(incoming->request));
    const bool alive = co_await Answer(*incoming, std::move(reply));
    if (!alive || !incoming->keep_alive) break;
  }
  stream_.socket().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
}

// ---- Reading ------------------------------------------------------------------------------------

net::awaitable<bool> HttpConnection::AwaitFirstByte() {
  if (buffer_.size() > 0) co_return true;
  stream_.expires_after(shared_.options.idle_timeout);
  const auto [error, bytes] = co_await stream_.async_read_some(buffer_.prepare(4096), kResult);
  buffer_.commit(bytes);
  co_return !error;
}

net::awaitable<std::optional<HttpConnection::Incoming>> HttpConnection::Read() {
  if (!co_await AwaitFirstByte()) co_return std::nullopt;
  http::request_parser<http::string_body> parser;
  parser.header_limit(static_cast<uint32_t>(shared_.options.max_header_bytes));
  parser.body_limit(static_cast<uint64_t>(shared_.options.max_body_bytes));
  stream_.expires_after(shared_.options.header_timeout);
  auto [error, bytes] = co_await http::async_read_header(stream_, buffer_, parser, kResult);
  if (!error) {
    stream_.expires_after(shared_.options.body_timeout);
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      static const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await net::async_write(stream_, net::buffer(go_on), kResult);
    }
    std::tie(error, bytes) = co_await http::async_read(stream_, buffer_, parser, kResult);
  }
  if (error) {
    co_await Refuse(error);
    co_return std::nullopt;
  }
  auto message = parser.release();
  Incoming incoming;
  incoming.request.method = std::string(message.method_string());
  SetTarget(std::string(message.target()), incoming.request);
  for (const auto& field : message) {
    incoming.request.headers[absl::AsciiStrToLower(std::string(field.name_string()))] =
        std::string(field.value());
  }
  incoming.request.body = std::move(message.body());
  incoming.request.client = client_;
  incoming.head_only = message.method() == http::verb::head;
  incoming.keep_alive = message.keep_alive();
  incoming.chunked = message.version() >= 11;
  co_return incoming;
}

// Answers a broken request where that is still possible.
net::awaitable<void> HttpConnection::Refuse(const error_code& error) {
  HttpResponse response;
  if (error == http::error::body_limit) {
    response = ErrorResponse(
        413, "body_too_large",
        "the body is larger than " + std::to_string(shared_.options.max_body_bytes) + " bytes");
  } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    response = ErrorResponse(431, "headers_too_large",
                             "the headers are larger than " +
                                 std::to_string(shared_.options.max_header_bytes) + " bytes");
  } else if (error == beast::error::timeout) {
    co_return;
  } else if (error.category() == make_error_code(http::error::bad_method).category() &&
             error != http::error::end_of_stream && error != http::error::partial_message) {
    response = ErrorResponse(400, "bad_request", "this is not HTTP/1.1: " + error.message());
  } else {
    co_return;
  }
  const Incoming broken;
  co_await Write(broken, std::move(response));
}

// ---- Answering ----------------------------------------------------------------------------------

net::awaitable<HttpReply> HttpConnection::Handle(HttpRequest request) {
  if (request.body.size() <= kLargeBody) co_return shared_.handler(std::move(request));
  auto call = [this, request = std::move(request)]() mutable -> net::awaitable<HttpReply> {
    co_return shared_.handler(std::move(request));
  };
  co_return co_await net::co_spawn(shared_.slow, std::move(call), net::use_awaitable);
}

net::awaitable<bool> HttpConnection::Answer(const Incoming& incoming, HttpReply reply) {
  if (reply.work == nullptr) co_return co_await Write(incoming, std::move(reply.response));
  co_return co_await Finish(incoming, std::move(reply));
}

// The pending read has no time limit; writes, which begin later, have their own.
net::awaitable<bool> HttpConnection::Finish(const Incoming& incoming, HttpReply reply) {
  using net::experimental::awaitable_operators::operator||;
  stream_.expires_never();
  auto outcome = co_await (AwaitDisconnect() || Work(incoming, std::move(reply)));
  const auto* done = std::get_if<1>(&outcome);
  co_return done != nullptr && done->value_or(false);
}

net::awaitable<void> HttpConnection::AwaitDisconnect() {
  while (buffer_.size() < kReadAhead) {
    const auto [error, bytes] = co_await stream_.async_read_some(buffer_.prepare(4096), kResult);
    buffer_.commit(bytes);
    if (error) co_return;
  }
  net::steady_timer never(stream_.get_executor(), net::steady_timer::time_point::max());
  co_await never.async_wait(kResult);
}

net::awaitable<std::optional<bool>> HttpConnection::Work(const Incoming& incoming,
                                                         HttpReply reply) {
  const auto notification = std::make_shared<Notification>(stream_.get_executor());
  reply.work->OnUpdate([notification] { notification->Notify(); });
  const auto interval = shared_.options.filler_interval;
  if (reply.streamed && !co_await WriteHead(incoming, reply.response)) co_return false;
  for (bool done = false; !done;) {
    const bool notified = co_await notification->Await(
        reply.filler.empty() ? net::steady_timer::time_point::max()
                             : net::steady_timer::clock_type::now() + interval);
    if (notified) done = reply.work->Advance(reply.response);
    if (!reply.streamed) continue;
    std::string data = notified ? std::exchange(reply.response.body, "") : reply.filler;
    if (!data.empty() && !co_await WriteChunk(incoming, std::move(data))) co_return false;
  }
  if (!reply.streamed) co_return co_await Write(incoming, std::move(reply.response));
  co_return co_await WriteEnd(incoming);
}

// ---- Writing ------------------------------------------------------------------------------------

net::awaitable<bool> HttpConnection::Write(const Incoming& incoming, HttpResponse response) {
  http::response_header<> head = Head(response, incoming.keep_alive);
  // RFC 9110 8.6: an answer that says that there is nothing must not say how much.
  if (response.status != 204) {
    head.set(http::field::content_length, std::to_string(response.body.size()));
  }
  std::string text = Text(head);
  if (!incoming.head_only) text += response.body;
  co_return co_await Send(std::move(text));
}

net::awaitable<bool> HttpConnection::WriteHead(const Incoming& incoming,
                                               const HttpResponse& response) {
  http::response_header<> head = Head(response, incoming.keep_alive && incoming.chunked);
  if (incoming.chunked) head.set(http::field::transfer_encoding, "chunked");
  std::string text = Text(head);
  co_return co_await Send(std::move(text));
}

net::awaitable<bool> HttpConnection::WriteChunk(const Incoming& incoming, std::string data) {
  if (incoming.chunked) data = fmt::format("{:x}\r\n{}\r\n", data.size(), data);
  co_return co_await Send(std::move(data));
}

net::awaitable<bool> HttpConnection::WriteEnd(const Incoming& incoming) {
  if (!incoming.chunked) co_return false;
  std::string last = "0\r\n\r\n";
  co_return co_await Send(std::move(last));
}

net::awaitable<bool> HttpConnection::Send(std::string text) {
  stream_.expires_after(shared_.options.write_timeout);
  const auto [error, bytes] = co_await net::async_write(stream_, net::buffer(text), kResult);
  co_return !error;
}

}  // namespace hippodrome
