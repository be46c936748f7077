// A server that says what a test writes, byte for byte.
#ifndef HIPPODROME_TESTS_TESTING_SCRIPTED_SERVER_H_
#define HIPPODROME_TESTS_TESTING_SCRIPTED_SERVER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hippodrome {

// Answers one request after the other, on one connection at a time.
class ScriptedServer {
 public:
  struct Reply {
    std::vector<std::string> pieces;  // sent one by one
    bool close = false;               // and then closes the connection
    bool silent = false;              // says nothing until the client has gone
  };
  // What to answer to a request, head and body; `number` counts them from 0.
  using Script = std::function<Reply(int number, const std::string& request)>;

  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(where);
    ::bind(socket_, reinterpret_cast<sockaddr*>(&where), size);
    ::listen(socket_, 64);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&where), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(where.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }

  ~ScriptedServer() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }

  const std::string& address() const { return address_; }
  int connections() const { return connections_; }

 private:
  void Serve() {
    for (int client; (client = ::accept(socket_, nullptr, nullptr)) >= 0; ::close(client)) {
      ++connections_;
      std::string input;
      while (ServeRequest(client, input)) {
      }
    }
  }

  bool ServeRequest(int client, std::string& input) {
    size_t head;
    while ((head = input.find("\r\n\r\n")) == std::string::npos) {
      if (!Read(client, input)) return false;
    }
    const size_t field = input.find("Content-Length: ");
    const size_t length = field < head ? std::strtoul(input.c_str() + field + 16, nullptr, 10) : 0;
    while (input.size() < head + 4 + length) {
      if (!Read(client, input)) return false;
    }
    const Reply reply = script_(requests_++, input.substr(0, head + 4 + length));
    input.erase(0, head + 4 + length);
    for (const std::string& piece : reply.pieces) {
      if (::send(client, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) return false;
    }
    while (reply.silent && Read(client, input)) {
    }
    return !reply.close && !reply.silent;
  }

  static bool Read(int client, std::string& input) {
    char bytes[4096];
    const ssize_t size = ::recv(client, bytes, sizeof(bytes), 0);
    if (size > 0) input.append(bytes, static_cast<size_t>(size));
    return size > 0;
  }

  const Script script_;
  int socket_ = -1;
  std::string address_;
  std::atomic<int> connections_ = 0;
  int requests_ = 0;
  std::thread thread_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_SCRIPTED_SERVER_H_
