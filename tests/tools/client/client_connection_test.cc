#include "tools/client/client_connection.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/scripted_server.h"

namespace hippodrome::client_connection_test {
namespace {

using Reply = ScriptedServer::Reply;

const std::string kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

// Calls one after the other on one connection.
class Client {
 public:
  explicit Client(const std::string& address, const std::string& key = "")
      : endpoint_(HttpEndpoint::Make(address, {.api_key = key}).value()),
        connection_(std::make_shared<ClientConnection>(context_.get_executor(), endpoint_)) {}

  absl::StatusOr<ClientAnswer> Call(ClientCall call = {.path = "/a"}) {
    body.clear();
    call.on_body = [this](int, std::string_view piece) { body += piece; };
    return Await(connection_->Call(call));
  }
  absl::StatusOr<std::string> Get(const std::string& path) { return Await(connection_->Get(path)); }

  std::string body;

 private:
  template <typename Result>
  Result Await(boost::asio::awaitable<Result> work) {
    Result result = absl::InternalError("");
    boost::asio::co_spawn(context_, std::move(work),
                          [&](std::exception_ptr, Result got) { result = std::move(got); });
    context_.restart();
    context_.run();
    return result;
  }

  boost::asio::io_context context_;
  std::shared_ptr<HttpEndpoint> endpoint_;
  std::shared_ptr<ClientConnection> connection_;
};

TEST(ClientConnectionTest, SendsWhatIsAskedAndKeepsTheConnection) {
  std::vector<std::string> requests;
  {
    ScriptedServer server([&](int, const std::string& request) -> Reply {
      requests.push_back(request);
      return {.pieces = {kHello}};
    });
    Client client(server.address(), "sk-1");
    EXPECT_EQ(client.Call()->status, 200);
    EXPECT_EQ(client.body, "hello");
    EXPECT_TRUE(client.Call({.method = "POST", .path = "/b", .body = "{}"}).ok());
    EXPECT_EQ(server.connections(), 1);
    EXPECT_EQ(requests[0], "GET /a HTTP/1.1\r\nHost: " + server.address() +
                               "\r\nAuthorization: Bearer sk-1\r\n\r\n");
  }
  EXPECT_TRUE(requests[1].starts_with("POST /b HTTP/1.1\r\n"));
  EXPECT_TRUE(requests[1].ends_with("Content-Length: 2\r\n\r\n{}"));
}

TEST(ClientConnectionTest, ReadsAnswersInPiecesOfAnySize) {
  const std::string answer =
      "HTTP/1.1 429 Too Many\r\nTransfer-Encoding: chunked\r\nRetry-After: 7\r\n\r\n"
      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
  size_t size = 1;
  ScriptedServer server([&](int, const std::string&) {
    Reply reply;
    for (size_t at = 0; at < answer.size(); at += size) {
      reply.pieces.push_back(answer.substr(at, size));
    }
    return reply;
  });
  Client client(server.address());
  for (; size <= answer.size(); size += 5) {
    const auto got = client.Call();
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->status, 429);
    EXPECT_EQ(got->retry_after, 7);
    EXPECT_EQ(client.body, "abcde");
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(ClientConnectionTest, ABodyMayEndWithTheConnection) {
  ScriptedServer server([&](int, const std::string&) -> Reply {
    return {.pieces = {"HTTP/1.1 200 OK\r\n\r\nall of it"}, .close = true};
  });
  Client client(server.address());
  EXPECT_TRUE(client.Call().ok());
  EXPECT_EQ(client.body, "all of it");
  EXPECT_TRUE(client.Call().ok());
  EXPECT_EQ(server.connections(), 2);
}

TEST(ClientConnectionTest, AClosedConnectionIsReplacedOnce) {
  ScriptedServer server([](int number, const std::string&) -> Reply {
    if (number == 1) return {.close = true};  // as if it had been idle for too long
    return {.pieces = {kHello}};
  });
  Client client(server.address());
  EXPECT_TRUE(client.Call().ok());
  EXPECT_TRUE(client.Call().ok());
  EXPECT_EQ(server.connections(), 2);
}

TEST(ClientConnectionTest, BrokenAnswersAreErrors) {
  const std::pair<const char*, absl::StatusCode> cases[] = {
      {"", absl::StatusCode::kAborted},
      {"HTTP/1.1 200 OK\r\nConte", absl::StatusCode::kAborted},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", absl::StatusCode::kAborted},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
       absl::StatusCode::kAborted},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", absl::StatusCode::kDataLoss},
      {"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\n", absl::StatusCode::kDataLoss},
      {"SSH-2.0-OpenSSH\r\n", absl::StatusCode::kDataLoss}};
  for (const auto& [text, code] : cases) {
    ScriptedServer server([&, sent = text](int, const std::string&) -> Reply {
      return {.pieces = {sent}, .close = true};
    });
    EXPECT_EQ(Client(server.address()).Call().status().code(), code) << text;
  }
}

TEST(ClientConnectionTest, EndlessHeadersAndBodiesAreErrors) {
  const std::string many(1 << 20, 'x');
  ScriptedServer server([&](int number, const std::string&) -> Reply {
    return {.pieces = {number == 0 ? "HTTP/1.1 200 OK\r\nX: " : "HTTP/1.1 200 OK\r\n\r\n", many},
            .close = true};
  });
  Client client(server.address());
  EXPECT_EQ(client.Call().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(client.Call({.path = "/", .most_bytes = 1000}).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(ClientConnectionTest, ASilentServerIsGivenUp) {
  ScriptedServer server([](int, const std::string&) -> Reply { return {.silent = true}; });
  const auto answer =
      Client(server.address()).Call({.path = "/", .timeout = std::chrono::milliseconds(50)});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(ClientConnectionTest, NobodyListens) {
  std::string address;
  {
    ScriptedServer server([](int, const std::string&) -> Reply { return {}; });
    address = server.address();
  }
  const absl::Status status = Client(address).Call().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(std::string(status.message()).find(address), std::string::npos);
  EXPECT_FALSE(HttpEndpoint::Make("nowhere", {}).ok());
  EXPECT_FALSE(HttpEndpoint::Make("a:1", {.authorities = "-----BEGIN NOTHING-----"}).ok());
}

TEST(ClientConnectionTest, GetGivesTheBodyOrAnError) {
  ScriptedServer server([](int number, const std::string&) -> Reply {
    if (number == 0) return {.pieces = {kHello}};
    return {.pieces = {"HTTP/1.1 401 No\r\nContent-Length: 7\r\n\r\na key\n!"}, .close = true};
  });
  Client client(server.address());
  EXPECT_EQ(*client.Get("/x"), "hello");
  const absl::Status status = client.Get("/x").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()), "/x answers 401: a key");
}

}  // namespace
}  // namespace hippodrome::client_connection_test
