#include "tests/testing/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "server/address.h"

namespace hippodrome {
namespace {

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

HttpClient::HttpClient(const std::string& address, const TlsContext& tls) {
  const HostPort where = ParseAddress(address).value();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(where.port);
  inet_pton(AF_INET, where.host.c_str(), &to.sin_addr);
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) Close();
  if (tls != nullptr) tls_ = std::make_unique<TlsSession>(tls, where.host);
}

HttpClient::~HttpClient() { Close(); }

void HttpClient::Close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void HttpClient::HalfClose() {
  if (tls_ != nullptr) {
    tls_->End();
    SendBytes(std::exchange(tls_->output(), ""));
  }
  ::shutdown(socket_, SHUT_WR);
}

void HttpClient::Reset() {
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  Close();
}

void HttpClient::Send(const std::string& bytes) {
  constexpr size_t kPiece = 64 << 10;
  if (tls_ == nullptr) return SendBytes(bytes);
  if (!ShakeHands()) return;
  for (size_t sent = 0; sent < bytes.size(); sent += kPiece) {
    tls_->Write(std::string_view(bytes).substr(sent, kPiece));
    SendBytes(std::exchange(tls_->output(), ""));
  }
}

bool HttpClient::ShakeHands() {
  auto outcome = TlsSession::Outcome::kWantsInput;
  while (outcome == TlsSession::Outcome::kWantsInput) {
    outcome = tls_->Handshake();
    SendBytes(std::exchange(tls_->output(), ""));
    if (outcome == TlsSession::Outcome::kWantsInput && !Receive()) return false;
  }
  return outcome == TlsSession::Outcome::kDone;
}

void HttpClient::SendBytes(const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

void HttpClient::SendRequest(const std::string& method, const std::string& path,
                             const std::string& body) {
  Send(method + " " + path + " HTTP/1.1\r\nHost: test\r\nContent-Length: " +
       std::to_string(body.size()) + "\r\n\r\n" + body);
}

HttpAnswer HttpClient::Get(const std::string& path) {
  Send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
  return Read();
}

HttpAnswer HttpClient::Post(const std::string& path, const std::string& body) {
  SendRequest("POST", path, body);
  return Read();
}

bool HttpClient::Receive() {
  char bytes[4096];
  const ssize_t n = ::recv(socket_, bytes, sizeof(bytes), 0);
  if (n <= 0) return false;
  const std::string_view received(bytes, static_cast<size_t>(n));
  if (tls_ != nullptr) {
    tls_->Feed(received);
  } else {
    buffer_.append(received);
  }
  return true;
}

bool HttpClient::Fill() { return tls_ == nullptr ? Receive() : ShakeHands() && FillFromTls(); }

bool HttpClient::FillFromTls() {
  char bytes[4096];
  size_t n = 0;
  auto outcome = TlsSession::Outcome::kWantsInput;
  while ((outcome = tls_->Read(bytes, sizeof(bytes), n)) == TlsSession::Outcome::kWantsInput) {
    if (!Receive()) return false;
  }
  buffer_.append(bytes, n);
  return outcome == TlsSession::Outcome::kDone;
}

bool HttpClient::Closed() { return !Fill(); }

bool HttpClient::ReadLine(std::string& line) {
  size_t end;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!Fill()) return false;
  }
  line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return true;
}

bool HttpClient::ReadBytes(size_t count, std::string& bytes) {
  while (buffer_.size() < count) {
    if (!Fill()) return false;
  }
  bytes = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return true;
}

bool HttpClient::ReadChunks(HttpAnswer& answer,
                            const std::function<bool(const std::string&)>& on_chunk) {
  std::string line, chunk, end;
  while (ReadLine(line)) {
    const size_t size = std::strtoul(line.c_str(), nullptr, 16);
    if (!ReadBytes(size, chunk) || !ReadLine(end)) return false;
    if (size == 0) return true;
    answer.body += chunk;
    if (on_chunk && !on_chunk(chunk)) return true;
  }
  return false;
}

HttpAnswer HttpClient::Read(const std::function<bool(const std::string&)>& on_chunk) {
  HttpAnswer answer;
  std::string line;
  if (!ReadLine(line)) return {};
  while (line.starts_with("HTTP/1.1 100")) {
    if (!ReadLine(line) || !ReadLine(line)) return {};
  }
  const int status = std::atoi(line.c_str() + std::min<size_t>(line.size(), 9));
  while (ReadLine(line) && !line.empty()) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) {
      answer.headers[Lower(line.substr(0, colon))] = line.substr(colon + 2);
    }
  }
  bool complete;
  if (answer.headers["transfer-encoding"] == "chunked") {
    complete = ReadChunks(answer, on_chunk);
  } else {
    complete =
        ReadBytes(std::strtoul(answer.headers["content-length"].c_str(), nullptr, 10), answer.body);
  }
  answer.status = complete ? status : 0;
  return answer;
}

}  // namespace hippodrome
