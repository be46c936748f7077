#include "server/http/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "tests/testing/certificates.h"
#include "tests/testing/http_client.h"
#include "tests/testing/manual_work.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::http_server_test {
namespace {

// Over plain TCP, and over TLS.
class HttpServerTest : public testing::TestWithParam<bool> {
 protected:
  HttpServerTest() {
    options_.address = "127.0.0.1:0";
    options_.max_body_bytes = 100000;
    options_.max_header_bytes = 4096;
  }

  void Start() {
    auto server = HttpServer::Start(
        options_,
        [this](HttpRequest request) {
          HttpReply reply;
          if (request.path == "/stream" || request.path == "/later") {
            reply.streamed = request.path == "/stream";
            reply.filler = reply.streamed ? ": waiting\n\n" : "";
            reply.work = std::make_unique<ManualWork>(control_);
          } else if (request.path == "/client") {
            reply.response.body = request.client;
          } else if (request.path == "/throw") {
            throw std::bad_alloc();
          } else {
            reply.response.body = request.method + " " + request.path + " " + request.body;
          }
          return reply;
        },
        nullptr, tls_.server);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  HttpOptions options_;
  std::shared_ptr<ManualWork::Control> control_ = std::make_shared<ManualWork::Control>();
  const TlsPeers tls_ = GetParam() ? NewTlsPeers() : TlsPeers();
  std::unique_ptr<HttpServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Transports, HttpServerTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Plain"; });

TEST_P(HttpServerTest, AnswersAndKeepsTheConnection) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  EXPECT_EQ(client.Get("/a?x=1").body, "GET /a ");
  const HttpAnswer answer = client.Post("/b", "body");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "POST /b body");
  EXPECT_EQ(answer.headers.at("content-type"), "application/json");
}

TEST_P(HttpServerTest, KnowsWhoAsks) {
  Start();
  EXPECT_EQ(HttpClient(server_->address(), tls_.client).Get("/client").body, "127.0.0.1");
}

TEST_P(HttpServerTest, AStreamThatWaitsSendsComments) {
  options_.filler_interval = std::chrono::milliseconds(20);
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.SendRequest("GET", "/stream", "");
  int comments = 0;
  std::string events;
  client.Read([&](const std::string& chunk) {
    if (chunk == ": waiting\n\n") {
      if (++comments == 2) control_->Add("data: last\n\n", true);
    } else {
      events += chunk;
    }
    return true;
  });
  EXPECT_GE(comments, 2);
  EXPECT_EQ(events, "data: last\n\n");
}

TEST_P(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.Send("GET /1 HTTP/1.1\r\nHost: t\r\n\r\nGET /2 HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(client.Read().body, "GET /1 ");
  EXPECT_EQ(client.Read().body, "GET /2 ");
}

TEST_P(HttpServerTest, ClosesWhenAskedTo) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.Send("GET /1 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.Read().body, "GET /1 ");
  EXPECT_TRUE(client.Closed());
}

TEST_P(HttpServerTest, BodiesUpToTheLimitAreTaken) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  const std::string body(100000, 'x');
  EXPECT_EQ(client.Post("/b", body).body, "POST /b " + body);
  EXPECT_EQ(HttpClient(server_->address(), tls_.client).Post("/b", body + "x").status, 413);
}

TEST_P(HttpServerTest, BrokenRequestsAreRefused) {
  Start();
  struct Row {
    std::string bytes;
    int status;
  };
  const Row rows[] = {
      {"nonsense\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"GET / HTTP/1.1\r\nX: " + std::string(5000, 'x') + "\r\n\r\n", 431},
      {"GET /" + std::string(5000, 'x') + " HTTP/1.1\r\n\r\n", 414},
      {"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 9999999999999\r\n\r\n", 413},
  };
  for (const Row& row : rows) {
    HttpClient client(server_->address(), tls_.client);
    client.Send(row.bytes);
    const HttpAnswer answer = client.Read();
    EXPECT_EQ(answer.status, row.status) << row.bytes.substr(0, 60);
    EXPECT_EQ(answer.body.rfind("{\"error\":", 0), 0u) << answer.body;
    EXPECT_TRUE(client.Closed());
  }
}

TEST_P(HttpServerTest, ChunkedBodiesAreJoined) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.Send(
      "POST /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(client.Read().body, "POST /c abcde");
}

TEST_P(HttpServerTest, SlowHeadersAreCutOff) {
  options_.header_timeout = std::chrono::seconds(1);
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.Send("GET / HT");
  EXPECT_EQ(client.Read().status, 408);
  EXPECT_TRUE(client.Closed());
}

TEST_P(HttpServerTest, StreamsPieceByPiece) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.SendRequest("POST", "/stream", "");
  int pieces = 0;
  control_->Add("piece 0", false);
  const HttpAnswer answer = client.Read([&](const std::string& piece) {
    EXPECT_EQ(piece, "piece " + std::to_string(pieces));
    ++pieces;
    if (pieces < 3) control_->Add("piece " + std::to_string(pieces), false);
    if (pieces == 3) control_->Add("", true);
    return true;
  });
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(pieces, 3);
  EXPECT_TRUE(WaitUntil([&] { return control_->WasDestroyed(); }));
  EXPECT_EQ(client.Get("/again").body, "GET /again ");
}

TEST_P(HttpServerTest, AnswersLater) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.SendRequest("POST", "/later", "");
  ASSERT_TRUE(WaitUntil([&] { return control_->Started(); }));
  control_->Add("one ", false);
  control_->Add("two", true);
  const HttpAnswer answer = client.Read();
  EXPECT_EQ(answer.body, "one two");
  EXPECT_EQ(client.Get("/again").body, "GET /again ");
}

TEST_P(HttpServerTest, ADisconnectEndsTheWork) {
  Start();
  for (const char* path : {"/stream", "/later"}) {
    control_ = std::make_shared<ManualWork::Control>();
    HttpClient client(server_->address(), tls_.client);
    client.SendRequest("POST", path, "");
    ASSERT_TRUE(WaitUntil([&] { return control_->Started(); }));
    client.Close();
    EXPECT_TRUE(WaitUntil([&] { return control_->WasDestroyed(); })) << path;
  }
}

TEST_P(HttpServerTest, ARequestSentAheadOfAStreamWaitsForItsEnd) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.SendRequest("POST", "/stream", "");
  client.SendRequest("GET", "/next", "");
  ASSERT_TRUE(WaitUntil([&] { return control_->Started(); }));
  control_->Add("text", true);
  EXPECT_EQ(client.Read().body, "text");
  EXPECT_EQ(client.Read().body, "GET /next ");
}

TEST_P(HttpServerTest, AReaderThatStopsReadingIsCutOff) {
  options_.write_timeout = std::chrono::seconds(1);
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.SendRequest("POST", "/stream", "");
  ASSERT_TRUE(WaitUntil([&] { return control_->Started(); }));
  control_->Add(std::string(64 << 20, 'x'), false);
  EXPECT_EQ(HttpClient(server_->address(), tls_.client).Get("/other").body, "GET /other ");
  EXPECT_TRUE(WaitUntil([&] { return control_->WasDestroyed(); }));
}

// Not only once the system's buffers are full, which take megabytes.
TEST_P(HttpServerTest, AReaderThatStopsReadingHoldsLittle) {
  options_.write_timeout = std::chrono::seconds(1);
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.SendRequest("POST", "/stream", "");
  ASSERT_TRUE(WaitUntil([&] { return control_->Started(); }));
  control_->Add(std::string(1 << 20, 'x'), false);
  EXPECT_TRUE(WaitUntil([&] { return control_->WasDestroyed(); }));
}

TEST_P(HttpServerTest, ManyConnectionsAtOnce) {
  Start();
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      HttpClient client(server_->address(), tls_.client);
      for (int i = 0; i < 50; ++i) good += client.Post("/x", "y").body == "POST /x y" ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 400);
}

TEST_P(HttpServerTest, StopLetsARequestFinish) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  HttpClient idle(server_->address(), tls_.client);
  EXPECT_EQ(idle.Get("/").status, 200);
  client.SendRequest("POST", "/stream", "");
  ASSERT_TRUE(WaitUntil([&] { return control_->Started(); }));
  std::thread stop([&] { server_->Stop(std::chrono::seconds(30)); });
  control_->Add("the end", true);
  EXPECT_EQ(client.Read().body, "the end");
  stop.join();
  EXPECT_TRUE(idle.Closed());
  EXPECT_EQ(HttpClient(server_->address(), tls_.client).Get("/").status, 0);
}

// Were the request still counted as busy, the server would wait for the whole hour.
TEST_P(HttpServerTest, AHandlerThatThrowsEndsItsConnectionAlone) {
  Start();
  HttpClient other(server_->address(), tls_.client);
  EXPECT_EQ(other.Get("/1").status, 200);
  for (const std::string& body : {std::string("x"), std::string(90000, 'x')}) {
    HttpClient client(server_->address(), tls_.client);
    client.SendRequest("POST", "/throw", body);
    EXPECT_TRUE(client.Closed());
  }
  EXPECT_EQ(other.Get("/2").status, 200);
  server_->Stop(std::chrono::hours(1));
}

TEST_P(HttpServerTest, StopWithoutPatienceDestroysTheWork) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.SendRequest("POST", "/later", "");
  ASSERT_TRUE(WaitUntil([&] { return control_->Started(); }));
  server_->Stop(std::chrono::milliseconds(0));
  EXPECT_TRUE(control_->WasDestroyed());
}

TEST_P(HttpServerTest, APortThatIsTakenIsAnError) {
  Start();
  HttpOptions other = options_;
  other.address = server_->address();
  const auto second = HttpServer::Start(other, [](HttpRequest) { return HttpReply(); });
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_NE(Message(second.status()).find(server_->address()), std::string::npos);
}

}  // namespace
}  // namespace hippodrome::http_server_test
