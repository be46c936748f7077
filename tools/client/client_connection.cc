#include "tools/client/client_connection.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kReadBytes = 64 << 10;
constexpr uint32_t kMostHeaderBytes = 64 << 10;
constexpr int64_t kMostRetryAfter = 3600;

auto Into(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

std::string RequestText(const ClientCall& call, const std::string& fields) {
  std::string text = call.method + " " + call.path + " HTTP/1.1\r\n" + fields;
  if (!call.body.empty()) {
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(call.body.size()) +
        "\r\n";
  }
  return text + "\r\n" + call.body;
}

// Seconds; dates, which our servers do not send, count as none.
int64_t RetryAfter(std::string_view text) {
  int64_t seconds = 0;
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (code != std::errc() || rest != text.data() + text.size()) return 0;
  return std::clamp<int64_t>(seconds, 0, kMostRetryAfter);
}

absl::StatusOr<asio::ssl::context> TlsContext(const ClientSecurity& security) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  error_code error;
  context.set_verify_mode(asio::ssl::verify_peer, error);
  context.add_certificate_authority(asio::buffer(security.authorities), error);
  if (error) return InvalidArgument("--tls-ca: " + error.message());
  if (!security.certificate.empty()) {
    context.use_certificate_chain(asio::buffer(security.certificate), error);
    if (error) return InvalidArgument("--tls-client-cert: " + error.message());
    context.use_private_key(asio::buffer(security.private_key), asio::ssl::context::pem, error);
    if (error) return InvalidArgument("--tls-client-key: " + error.message());
  }
  return context;
}

}  // namespace

absl::StatusOr<std::shared_ptr<HttpEndpoint>> HttpEndpoint::Make(const std::string& address,
                                                                 const ClientSecurity& security) {
  const std::shared_ptr<HttpEndpoint> endpoint(new HttpEndpoint);
  HIPPODROME_ASSIGN_OR_RETURN(endpoint->address_, ParseAddress(address));
  endpoint->fields_ = "Host: " + ToText(endpoint->address_) + "\r\n";
  if (!security.api_key.empty()) {
    endpoint->fields_ += "Authorization: Bearer " + security.api_key + "\r\n";
  }
  if (security.tls()) {
    HIPPODROME_ASSIGN_OR_RETURN(asio::ssl::context context, TlsContext(security));
    endpoint->tls_ = std::move(context);
  }
  return endpoint;
}

ClientConnection::ClientConnection(const asio::any_io_executor& executor,
                                   std::shared_ptr<HttpEndpoint> endpoint)
    : endpoint_(std::move(endpoint)), socket_(executor), resolver_(executor), timer_(executor) {}

void ClientConnection::StartTimer(std::chrono::steady_clock::duration timeout) {
  expired_ = false;
  timer_.expires_after(timeout);
  timer_.async_wait([self = weak_from_this(), call = calls_](const error_code& error) {
    const auto connection = self.lock();
    // The call that it was for may have ended already.
    if (error || !connection || connection->calls_ != call) return;
    connection->expired_ = true;
    connection->resolver_.cancel();
    connection->Close();
  });
}

void ClientConnection::Close() {
  error_code ignored;
  socket_.close(ignored);
}

absl::Status ClientConnection::Broken(const std::string& doing, const error_code& error) const {
  const std::string where = ToText(endpoint_->address());
  if (expired_) return absl::DeadlineExceededError(where + " took too long");
  return absl::AbortedError(doing + " " + where + ": " + error.message());
}

asio::awaitable<absl::Status> ClientConnection::Connect() {
  const HostPort& address = endpoint_->address();
  const std::string where = "cannot connect to " + ToText(address) + ": ";
  error_code error;
  const auto found =
      co_await resolver_.async_resolve(address.host, std::to_string(address.port), Into(error));
  if (!error) co_await asio::async_connect(socket_, found, Into(error));
  if (expired_) co_return Broken("", error);
  if (error) co_return Unavailable(where + error.message());
  socket_.set_option(tcp::no_delay(true), error);
  if (endpoint_->tls() == nullptr) co_return absl::OkStatus();
  tls_.emplace(socket_, *endpoint_->tls());
  tls_->set_verify_callback(asio::ssl::host_name_verification(address.host), error);
  error_code no_address;
  asio::ip::make_address(address.host, no_address);
  if (no_address) SSL_set_tlsext_host_name(tls_->native_handle(), address.host.c_str());
  co_await tls_->async_handshake(asio::ssl::stream_base::client, Into(error));
  if (expired_) co_return Broken("", error);
  if (error) co_return absl::UnauthenticatedError(where + "TLS: " + error.message());
  co_return absl::OkStatus();
}

asio::awaitable<error_code> ClientConnection::Write(const std::string& text) {
  error_code error;
  if (tls_) {
    co_await asio::async_write(*tls_, asio::buffer(text), Into(error));
  } else {
    co_await asio::async_write(socket_, asio::buffer(text), Into(error));
  }
  co_return error;
}

asio::awaitable<error_code> ClientConnection::ReadMore() {
  error_code error;
  const auto room = input_.prepare(kReadBytes);
  size_t bytes = 0;
  if (tls_) {
    bytes = co_await tls_->async_read_some(room, Into(error));
  } else {
    bytes = co_await socket_.async_read_some(room, Into(error));
  }
  input_.commit(bytes);
  answering_ = answering_ || bytes > 0;
  co_return error;
}

asio::awaitable<absl::StatusOr<ClientAnswer>> ClientConnection::Exchange(const ClientCall& call) {
  error_code error = co_await Write(RequestText(call, endpoint_->fields()));
  if (error) co_return Broken("writing to", error);
  http::response_parser<http::string_body> parser;
  parser.eager(true);
  parser.header_limit(kMostHeaderBytes);
  parser.body_limit(call.most_bytes);
  parser.skip(call.method == "HEAD");
  bool ended = false;
  while (!parser.is_done()) {
    for (size_t used = 1; input_.size() > 0 && used > 0 && !error && !parser.is_done();) {
      used = parser.put(input_.data(), error);
      input_.consume(used);
    }
    if (error && error != http::error::need_more) {
      co_return absl::DataLossError("an answer that cannot be read: " + error.message());
    }
    std::string& body = parser.get().body();
    if (!body.empty() && call.on_body) call.on_body(parser.get().result_int(), body);
    body.clear();
    if (parser.is_done()) break;
    if (ended) co_return Broken("reading from", asio::error::eof);
    error = co_await ReadMore();
    if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
      ended = true;
      error_code incomplete;
      if (parser.got_some()) parser.put_eof(incomplete);
    } else if (error) {
      co_return Broken("reading from", error);
    }
    error = {};
  }
  if (!parser.keep_alive() || ended) Close();
  const auto& answer = parser.get();
  const auto seconds = answer[http::field::retry_after];
  co_return ClientAnswer{static_cast<int>(answer.result_int()),
                         RetryAfter({seconds.data(), seconds.size()})};
}

asio::awaitable<absl::StatusOr<ClientAnswer>> ClientConnection::Call(const ClientCall& call) {
  const auto self = shared_from_this();
  ++calls_;
  StartTimer(call.timeout);
  for (bool kept = socket_.is_open();; kept = false) {
    if (!kept) {
      tls_.reset();
      input_.clear();
      const absl::Status connected = co_await Connect();
      if (!connected.ok()) {
        timer_.cancel();
        Close();
        co_return connected;
      }
    }
    answering_ = false;
    absl::StatusOr<ClientAnswer> answer = co_await Exchange(call);
    if (!answer.ok()) Close();
    // The server may have closed a connection that nobody used.
    const bool closed_meanwhile = kept && absl::IsAborted(answer.status()) && !answering_;
    if (closed_meanwhile) continue;
    timer_.cancel();
    co_return answer;
  }
}

asio::awaitable<absl::StatusOr<std::string>> ClientConnection::Get(std::string path) {
  std::string body;
  ClientCall call;
  call.path = std::move(path);
  call.on_body = [&](int, std::string_view piece) { body += piece; };
  const absl::StatusOr<ClientAnswer> answer = co_await Call(call);
  if (!answer.ok()) co_return answer.status();
  if (answer->status != 200) {
    co_return FailedPrecondition(call.path + " answers " + std::to_string(answer->status) + ": " +
                                 body.substr(0, body.find('\n')));
  }
  co_return body;
}

}  // namespace hippodrome
