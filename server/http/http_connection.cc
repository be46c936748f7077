#include "server/http/http_connection.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <new>
#include <utility>

#include "server/http/http_replies.h"

namespace hippodrome {

namespace net = boost::asio;
namespace http = boost::beast::http;
using net::experimental::awaitable_operators::operator||;

namespace {

constexpr auto kResult = net::as_tuple(net::use_awaitable);

// Tokenising more than this may take longer than other clients should wait.
constexpr size_t kLargeBody = 64 << 10;
constexpr size_t kAheadPiece = 4 << 10;

// For a client to take the refusal of a request that it is still sending: were the connection
// closed before, the refusal would be lost.
constexpr std::chrono::seconds kReadOut{2};

// Whoever has closed the connection resets it when more is sent; other clients pass over an interim
// response, as over the filler of a stream.
constexpr char kInterim[] = "HTTP/1.1 100 Continue\r\n\r\n";

// A head but for the line that says how the body is sent, and the empty one.
std::string Head(const HttpResponse& response, bool keep_alive, const CallIds& ids) {
  const auto status = static_cast<unsigned>(response.status);
  const std::string reason(http::obsolete_reason(http::int_to_status(status)));
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nConnection: {}\r\n", status, reason,
                  response.content_type, keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : response.headers) head += name + ": " + value + "\r\n";
  head += fmt::format("{}: {}\r\n{}: {}\r\n", kRequestIdHeader, ids.request_id, kTraceparentHeader,
                      ids.Traceparent());
  return head;
}

std::string Chunk(const HttpFraming& framing, std::string data) {
  if (!framing.chunked) return data;
  return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

// What may be sent before an answer that is not streamed.
std::string Poke(const HttpFraming& framing) { return framing.chunked ? kInterim : ""; }

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

// A request whose handler runs elsewhere.
struct LargeJob {
  LargeJob(HttpRequest r, BodyReservation m) : request(std::move(r)), memory(std::move(m)) {}

  HttpRequest request;
  BodyReservation memory;
  std::function<HttpReply()> later;  // null: the handler makes the reply
  HttpReply reply;
  std::exception_ptr error;
};

void RunHandler(const HttpHandler& handler, LargeJob& job) {
  try {
    // A reply that was put off, or one that is to be made of a large body.
    job.reply = job.later ? job.later() : handler(std::move(job.request));
    if (job.reply.later) job.reply = job.reply.later();
  } catch (...) {
    job.error = std::current_exception();
  }
  job.memory.Resize(0);
}

}  // namespace

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
  // `end`; else false then, or without memory earlier.
  net::awaitable<bool> Await(net::steady_timer::time_point end) {
    while (!notified_ && net::steady_timer::clock_type::now() < end) {
      timer_.expires_at(end);
      try {
        co_await timer_.async_wait(kResult);
      } catch (const std::bad_alloc&) {
        break;
      }
    }
    co_return std::exchange(notified_, false);
  }
  // When it is notified.
  net::awaitable<void> Await() {
    const auto never = net::steady_timer::time_point::max();
    for (bool notified = false; !notified;) notified = co_await Await(never);
  }

 private:
  net::steady_timer timer_;
  bool notified_ = false;
};

HttpConnection::HttpConnection(HttpShared& shared, net::ip::tcp::socket socket,
                               std::unique_ptr<TlsSession> tls)
    : shared_(shared),
      socket_(std::make_shared<HttpSocket>(std::move(socket), std::move(tls))),
      client_(socket_->Client()),
      ahead_(shared.bodies) {
  shared_.connections.fetch_add(1);
  shared_.metrics.Connected();
}

HttpConnection::~HttpConnection() {
  shared_.metrics.Disconnected();
  shared_.connections.fetch_sub(1);
}

void HttpConnection::Close() {
  closed_ = true;
  socket_->Close();
}

net::awaitable<void> HttpConnection::Run(std::unique_ptr<ConnectionTable::Place> place) {
  const auto self = shared_from_this();
  place_ = std::move(place);
  HttpRequestReader reader(shared_.options, shared_.gate, client_, shared_.bodies, *socket_,
                           *place_, shared_.all_metrics);
  for (bool first = true; !closed_ && !shared_.stopping; first = false) {
    HttpReading reading = co_await reader.Read(first);
    call_ = reading.call.get();
    if (socket_->handshake_failed()) {
      shared_.metrics.HandshakeFailed();
    } else if (socket_->expired()) {
      shared_.metrics.TimedOut();
    }
    if (reading.refusal) co_await Refuse(*reading.refusal, reading.origin);
    if (reading.cut && closed_) call_->Drop();
    if (!reading.incoming) break;
    if (!place_->Enter(ConnectionPhase::kAnswering)) {
      call_->Drop();
      break;
    }
    const bool alive = co_await Serve(*reading.incoming);
    if (!alive || !place_->Enter(ConnectionPhase::kWaiting)) break;
    socket_->ReleaseMemory();
    ahead_.Resize(static_cast<int64_t>(socket_->input().size()));
  }
  socket_->Shutdown();
}

net::awaitable<void> HttpConnection::Refuse(const HttpRefusal& refusal, const std::string& origin) {
  HttpReply reply;
  reply.response = ErrorResponse(refusal.status, refusal.code, refusal.message);
  if (refusal.status == 503) reply.response.headers.emplace_back("Retry-After", "1");
  HttpRequest request;
  request.headers["origin"] = origin;
  reply = shared_.cors.Allow(request, std::move(reply));
  const bool sent = co_await Write(HttpFraming(), std::move(reply.response));
  if (sent) co_await ReadOut();
}

net::awaitable<void> HttpConnection::ReadOut() {
  socket_->Shutdown();
  socket_->ExpireAfter(kReadOut);
  if (!place_->Enter(ConnectionPhase::kWaiting)) co_return;
  for (boost::system::error_code error; !error;) {
    socket_->Consume(socket_->input().size());
    error = co_await socket_->Read(kLargeBody);
  }
}

// ---- Answering ----------------------------------------------------------------------------------

net::awaitable<bool> HttpConnection::Serve(HttpIncoming& incoming) {
  const Busy busy(shared_.busy);
  socket_->ExpireNever();
  answered_ = false;
  call_->Received(static_cast<int64_t>(incoming.request.body.size()));
  std::optional<HttpReply> reply = co_await Handle(incoming);
  if (!reply) co_return false;
  call_->set_route(reply->method, reply->route);
  if (reply->streamed) call_->BeginStream();
  call_->set_model(std::move(reply->model));
  call_->set_key(std::move(reply->key));
  call_->set_probe(reply->probe);
  call_->set_limited(reply->response.limited);
  incoming.memory.Resize(0);
  bool alive = co_await Answer(incoming.framing, *std::move(reply));
  if (alive && incoming.unread) co_await ReadOut();
  alive = alive && incoming.framing.keep_alive;
  co_return alive;
}

net::awaitable<std::optional<HttpReply>> HttpConnection::Handle(HttpIncoming& incoming) {
  const auto size = static_cast<int64_t>(incoming.request.body.size());
  std::function<HttpReply()> later;
  if (incoming.request.body.size() <= kLargeBody) {
    HttpReply reply = shared_.handler(std::move(incoming.request));
    if (!reply.later) co_return std::move(reply);
    later = std::move(reply.later);
  }
  const auto job =
      std::make_shared<LargeJob>(std::move(incoming.request), std::move(incoming.memory));
  job->later = std::move(later);
  const auto notification = std::make_shared<Notification>(socket_->executor());
  const LargeBodyQueue::Ticket ticket =
      shared_.large.Submit(size, [&handler = shared_.handler, job, notification] {
        RunHandler(handler, *job);
        notification->Notify();
      });
  const auto outcome = co_await (AwaitDisconnect(Poke(incoming.framing)) || notification->Await());
  if (outcome.index() == 0) co_return std::nullopt;
  if (job->error) std::rethrow_exception(job->error);
  co_return std::move(job->reply);
}

net::awaitable<bool> HttpConnection::Answer(const HttpFraming& framing, HttpReply reply) {
  if (reply.work == nullptr) co_return co_await Write(framing, std::move(reply.response));
  std::string poke = Poke(framing);
  if (reply.streamed) poke = reply.filler.empty() ? "" : Chunk(framing, reply.filler);
  auto outcome = co_await (AwaitDisconnect(std::move(poke)) || Work(framing, std::move(reply)));
  const auto* done = std::get_if<1>(&outcome);
  co_return done != nullptr && done->value_or(false);
}

// Reads on, so that the end is seen whatever the client has sent before it. That counts as a body,
// and ends the connection where it takes more than one may.
net::awaitable<void> HttpConnection::AwaitDisconnect(std::string poke) {
  const int64_t most = shared_.options.max_header_bytes + shared_.options.max_body_bytes;
  while (!half_closed_) {
    const boost::system::error_code error = co_await socket_->Read(kAheadPiece);
    half_closed_ = error == net::error::eof;
    if (error && !half_closed_) co_return;
    const auto held = static_cast<int64_t>(socket_->input().size());
    // The buffer doubles as it grows.
    if (held > most || !ahead_.Resize(2 * held)) co_return;
  }
  // Behind the answer it would be taken for the beginning of another.
  if (!answered_ && (poke.empty() || !socket_->Poke(poke))) co_return;
  co_await socket_->AwaitReset();
}

net::awaitable<std::optional<bool>> HttpConnection::Work(const HttpFraming& framing,
                                                         HttpReply reply) {
  // Whoever waits for this or a disconnect would wait for the disconnect alone.
  try {
    co_return co_await Advance(framing, std::move(reply));
  } catch (const boost::system::system_error&) {
    co_return false;  // cancelled: the client has left
  } catch (const std::exception&) {
    call_->Finish(500);
    co_return false;
  }
}

net::awaitable<bool> HttpConnection::Advance(const HttpFraming& framing, HttpReply reply) {
  const auto notification = std::make_shared<Notification>(socket_->executor());
  reply.work->OnUpdate([notification] { notification->Notify(); });
  const auto interval = shared_.options.filler_interval;
  if (reply.streamed && !co_await WriteHead(framing, reply.response)) co_return false;
  for (bool done = false; !done;) {
    const bool notified = co_await notification->Await(
        reply.filler.empty() ? net::steady_timer::time_point::max()
                             : net::steady_timer::clock_type::now() + interval);
    if (notified) done = reply.work->Advance(reply.response);
    if (done) reply.permit.reset();
    call_->set_tokens(reply.response.tokens);
    if (!reply.streamed) continue;
    std::string data = notified ? std::exchange(reply.response.body, "") : reply.filler;
    if (notified) call_->Sent(static_cast<int64_t>(data.size()));
    if (done) call_->Finish(reply.response.status);
    if (!data.empty() && !co_await WriteChunk(framing, std::move(data))) co_return false;
  }
  bool sent = false;
  if (reply.streamed) {
    sent = co_await WriteEnd(framing);
  } else {
    sent = co_await Write(framing, std::move(reply.response));
  }
  answered_ = true;
  co_return sent;
}

// ---- Writing ------------------------------------------------------------------------------------

net::awaitable<bool> HttpConnection::Write(const HttpFraming& framing, HttpResponse response) {
  std::string text = Head(response, framing.keep_alive, call_->ids());
  // RFC 9110 8.6: an answer that says that there is nothing must not say how much; and 304 has
  // nothing of what it speaks of.
  if (response.status != 204 && response.status != 304) {
    text += fmt::format("Content-Length: {}\r\n", response.body.size());
  }
  text += "\r\n";
  if (!framing.head_only) text += response.body;
  call_->Sent(framing.head_only ? 0 : static_cast<int64_t>(response.body.size()));
  // Before the client can ask what was counted.
  call_->Finish(response.status);
  co_return co_await Send(std::move(text));
}

net::awaitable<bool> HttpConnection::WriteHead(const HttpFraming& framing,
                                               const HttpResponse& response) {
  std::string text = Head(response, framing.keep_alive && framing.chunked, call_->ids());
  text += framing.chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n";
  co_return co_await Send(std::move(text));
}

net::awaitable<bool> HttpConnection::WriteChunk(const HttpFraming& framing, std::string data) {
  std::string chunk = Chunk(framing, std::move(data));
  co_return co_await Send(std::move(chunk));
}

net::awaitable<bool> HttpConnection::WriteEnd(const HttpFraming& framing) {
  if (!framing.chunked) co_return false;
  std::string last = "0\r\n\r\n";
  co_return co_await Send(std::move(last));
}

net::awaitable<bool> HttpConnection::Send(std::string text) {
  socket_->ExpireAfter(shared_.options.write_timeout);
  const bool sent = co_await socket_->Send(std::move(text));
  if (socket_->expired()) {
    shared_.metrics.TimedOut();
  } else {
    socket_->ExpireNever();
  }
  co_return sent;
}

}  // namespace hippodrome
