#include "server/http/http_request_reader.h"

#include <algorithm>
#include <string>

#include "server/http/chunked_body.h"

namespace hippodrome {

namespace net = boost::asio;

namespace {

// Read at once; less while nothing may come, for thousands of connections may be idle.
constexpr size_t kPieceBytes = 16 << 10;
constexpr size_t kFirstBytes = 1 << 10;

constexpr int kMaxEmptyLines = 4;

HttpRefusal Overloaded() {
  return {503, "overloaded", "too many large bodies are being read: try again"};
}

// The value of a field that is there once; "" for others.
std::string_view OnlyValue(const RequestHead& head, std::string_view name) {
  std::string_view value;
  int found = 0;
  for (const auto& [field, text] : head.fields) {
    if (field != name) continue;
    value = text;
    ++found;
  }
  return found == 1 ? value : std::string_view();
}

}  // namespace

net::awaitable<HttpReading> HttpRequestReader::Read(bool first) {
  HttpReading reading;
  if (!co_await AwaitFirstByte(first)) co_return reading;
  reading.call = std::make_unique<CallRecord>(metrics_, Api::kHttp);
  RequestHead head;
  reading.refusal = co_await ReadHead(head);
  reading.call->Identify(OnlyValue(head, kRequestIdHeader), OnlyValue(head, kTraceparentHeader));
  if (const std::string* origin = head.Find("origin")) reading.origin = *origin;
  reading.cut = gone_;
  if (reading.refusal || gone_) co_return reading;
  const bool head_only = head.method == "HEAD";
  HttpRequest request;
  request.method = std::move(head.method);
  request.path = std::move(head.path);
  request.query = std::move(head.query);
  request.client = client_;
  for (const auto& [name, value] : head.fields) {
    const auto [field, added] = request.headers.try_emplace(name, value);
    if (!added) field->second += ", " + value;
  }
  if (gate_) gate_(request);
  const bool unread = LeavesBody(head, request);
  auto incoming = std::make_unique<HttpIncoming>(std::move(request), BodyReservation(budget_));
  incoming->framing = {head.keep_alive && !unread, head.http11, head_only};
  incoming->unread = unread;
  const int64_t limit = Limit(incoming->request);
  if (!unread) reading.refusal = co_await ReadBody(head, limit, *incoming);
  reading.cut = gone_;
  if (!reading.refusal && !gone_) reading.incoming = std::move(incoming);
  co_return reading;
}

net::awaitable<bool> HttpRequestReader::AwaitFirstByte(bool first) {
  if (socket_.input().empty()) {
    socket_.ExpireAfter(first ? options_.first_byte_timeout : options_.idle_timeout);
    const boost::system::error_code error = co_await socket_.Read(kFirstBytes);
    if (error) co_return false;
  }
  co_return place_.Enter(ConnectionPhase::kReading);
}

net::awaitable<HttpRequestReader::Outcome> HttpRequestReader::ReadMore() {
  const boost::system::error_code error = co_await socket_.Read(kPieceBytes);
  if (!error) co_return std::nullopt;
  if (socket_.expired()) co_return HttpRefusal{408, "timeout", "the request did not come in time"};
  gone_ = true;
  co_return std::nullopt;
}

net::awaitable<HttpRequestReader::Outcome> HttpRequestReader::ReadHead(RequestHead& head) {
  socket_.ExpireAfter(options_.header_timeout);
  // Clients of old sent an empty line behind a body.
  for (int i = 0; i < kMaxEmptyLines && socket_.input().starts_with("\r\n"); ++i) {
    socket_.Consume(2);
  }
  const auto limit = static_cast<size_t>(options_.max_header_bytes);
  size_t searched = 0;
  std::optional<size_t> end;
  while (!(end = FindHeadEnd(socket_.input().substr(0, limit), searched))) {
    searched = std::min(socket_.input().size(), limit);
    if (searched == limit) {
      const std::string_view input = socket_.input().substr(0, limit);
      ParseHead(input, head);  // for the fields that have come
      co_return HeadTooLarge(input, options_.max_header_bytes);
    }
    Outcome outcome = co_await ReadMore();
    if (outcome || gone_) co_return outcome;
  }
  Outcome outcome = ParseHead(socket_.input().substr(0, *end), head);
  socket_.Consume(*end);
  co_return outcome;
}

bool HttpRequestReader::LeavesBody(const RequestHead& head, const HttpRequest& request) {
  if (!request.answer) return false;
  return head.chunked || head.content_length > kSmallBodyBytes ||
         (head.expects_continue && head.content_length > 0);
}

net::awaitable<HttpRequestReader::Outcome> HttpRequestReader::ReadBody(const RequestHead& head,
                                                                       int64_t limit,
                                                                       HttpIncoming& incoming) {
  if (!head.chunked && head.content_length == 0) co_return std::nullopt;
  if (head.content_length > limit) co_return TooLarge(limit);
  // Refused here, a client has not sent megabytes in vain.
  if (!budget_.HasRoom(head.content_length)) co_return Overloaded();
  socket_.ExpireAfter(options_.body_timeout);
  if (head.expects_continue && socket_.input().empty()) {
    std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    co_await socket_.Send(std::move(go_on));
  }
  if (head.chunked) co_return co_await ReadChunks(limit, incoming);
  co_return co_await ReadBytes(head.content_length, incoming);
}

net::awaitable<HttpRequestReader::Outcome> HttpRequestReader::ReadBytes(int64_t length,
                                                                        HttpIncoming& incoming) {
  for (int64_t left = length; left > 0;) {
    const std::string_view data = socket_.input().substr(0, static_cast<size_t>(left));
    Outcome outcome;
    if (data.empty()) {
      outcome = co_await ReadMore();
    } else {
      outcome = Append(data, length, incoming);
    }
    if (outcome || gone_) co_return outcome;
    left -= static_cast<int64_t>(data.size());
    socket_.Consume(data.size());
  }
  co_return std::nullopt;
}

net::awaitable<HttpRequestReader::Outcome> HttpRequestReader::ReadChunks(int64_t limit,
                                                                         HttpIncoming& incoming) {
  ChunkedDecoder decoder;
  for (bool done = false; !done;) {
    ChunkedDecoder::Piece piece = decoder.Next(socket_.input());
    if (piece.refusal) co_return piece.refusal;
    done = piece.done;
    Outcome outcome;
    if (piece.consumed == 0) {
      outcome = co_await ReadMore();
    } else if (!piece.data.empty()) {
      outcome = Append(piece.data, limit, incoming);
    }
    if (outcome || gone_) co_return outcome;
    socket_.Consume(piece.consumed);
  }
  co_return std::nullopt;
}

// Memory follows what has come, not what is announced: who sends nothing holds nothing.
HttpRequestReader::Outcome HttpRequestReader::Append(std::string_view data, int64_t most,
                                                     HttpIncoming& incoming) {
  std::string& body = incoming.request.body;
  const auto size = static_cast<int64_t>(body.size() + data.size());
  if (size > most) return TooLarge(most);
  if (size > incoming.memory.bytes()) {
    const int64_t grown = std::max(2 * static_cast<int64_t>(body.size()), kSmallBodyBytes);
    const int64_t room = std::min(std::max(size, grown), most);
    if (!incoming.memory.Resize(room)) return Overloaded();
    body.reserve(static_cast<size_t>(room));
  }
  body.append(data);
  return std::nullopt;
}

int64_t HttpRequestReader::Limit(const HttpRequest& request) const {
  const bool own = request.route != nullptr && request.route->max_body_bytes > 0;
  return own ? request.route->max_body_bytes : options_.max_body_bytes;
}

HttpRefusal HttpRequestReader::TooLarge(int64_t limit) {
  return {413, "body_too_large", "the body is larger than " + std::to_string(limit) + " bytes"};
}

}  // namespace hippodrome
