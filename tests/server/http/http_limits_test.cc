// What clients may take of a server, by neglect or on purpose.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/http/http_server.h"
#include "tests/testing/certificates.h"
#include "tests/testing/http_client.h"
#include "tests/testing/manual_work.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::http_limits_test {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

// Over plain TCP, and over TLS.
class HttpLimitsTest : public testing::TestWithParam<bool> {
 protected:
  HttpLimitsTest() { options_.address = "127.0.0.1:0"; }

  void Start() {
    const auto handler = [this](const HttpRequest& request) {
      HttpReply reply;
      if (request.path == "/slow") {
        ++slow_;
        WaitUntil([&] { return !hold_; });
      }
      if (request.path == "/stream" || request.path == "/later") {
        reply.streamed = request.path == "/stream";
        if (reply.streamed) reply.filler = ":\n\n";
        reply.work = std::make_unique<ManualWork>(control_);
      } else {
        reply.response.body = request.path + " " + std::to_string(request.body.size());
      }
      return reply;
    };
    server_ = HttpServer::Start(options_, handler, &metrics_, tls_.server).value();
  }

  std::unique_ptr<HttpClient> Connect() {
    return std::make_unique<HttpClient>(server_->address(), tls_.client);
  }
  // A client whose request is being answered.
  std::unique_ptr<HttpClient> Begin(const std::string& path, const std::string& body = "") {
    control_ = std::make_shared<ManualWork::Control>();
    auto client = Connect();
    client->SendRequest("POST", path, body);
    EXPECT_TRUE(WaitUntil([&] { return control_->Started(); }));
    return client;
  }
  bool Gone() {
    return WaitUntil([&] { return control_->WasDestroyed(); });
  }
  // The value of a series, of the main listener where it does not say.
  double Value(const std::string& name, const std::string& labels = "{listener=\"main\"}") {
    const std::string series = "\n" + name + labels + " ";
    const std::string text = metrics_.Text();
    const size_t at = text.find(series);
    EXPECT_NE(at, std::string::npos) << series;
    return at == std::string::npos ? -1 : std::atof(text.c_str() + at + series.size());
  }
  double BodyBytes() { return Value("hippodrome_http_body_bytes"); }
  static std::string Refusals(int code) {
    return "{api=\"http\",code=\"" + std::to_string(code) + "\",model=\"\",route=\"none\"}";
  }

  HttpOptions options_;
  Metrics metrics_;
  std::atomic<bool> hold_ = false;
  std::atomic<int> slow_ = 0;
  std::shared_ptr<ManualWork::Control> control_ = std::make_shared<ManualWork::Control>();
  const TlsPeers tls_ = GetParam() ? NewTlsPeers() : TlsPeers();
  std::unique_ptr<HttpServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Transports, HttpLimitsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Plain"; });

// ---- Connections --------------------------------------------------------------------------------

TEST_P(HttpLimitsTest, SilentConnectionsLockNobodyOut) {
  options_.max_connections = 20;
  options_.max_connections_per_address = 0;
  Start();
  auto kept = Connect();
  EXPECT_EQ(kept->Get("/1").status, 200);
  const auto busy = Begin("/later");
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 60; ++i) silent.push_back(Connect());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Connect()->Get("/2").status, 200);
  EXPECT_TRUE(kept->Closed());
  EXPECT_TRUE(silent.front()->Closed());
  control_->Add("done", true);
  EXPECT_EQ(busy->Read().body, "done");
  EXPECT_GE(Value("hippodrome_http_connections_evicted_total"), 42);
  silent.clear();
  busy->Close();
  EXPECT_TRUE(WaitUntil([&] { return Value("hippodrome_http_connections") == 0; }));
}

TEST_P(HttpLimitsTest, WhereAllAreBusyNewcomersAreRefused) {
  options_.max_connections = 2;
  Start();
  const auto a = Begin("/later");
  const auto b = Begin("/later");
  EXPECT_TRUE(Connect()->Closed());
  EXPECT_EQ(
      Value("hippodrome_http_connections_refused_total", "{listener=\"main\",reason=\"full\"}"), 1);
  b->Close();
  EXPECT_TRUE(WaitUntil([&] { return Connect()->Get("/4").status == 200; }));
}

TEST_P(HttpLimitsTest, AnAddressHasItsShare) {
  options_.max_connections = 100;
  options_.max_connections_per_address = 2;
  Start();
  const auto a = Begin("/later");
  const auto b = Begin("/later");
  EXPECT_TRUE(Connect()->Closed());
  EXPECT_EQ(
      Value("hippodrome_http_connections_refused_total", "{listener=\"main\",reason=\"address\"}"),
      1);
}

TEST_P(HttpLimitsTest, WhoSaysNothingIsCutOff) {
  options_.first_byte_timeout = std::chrono::seconds(1);
  Start();
  auto kept = Connect();
  EXPECT_EQ(kept->Get("/1").status, 200);
  EXPECT_TRUE(Connect()->Closed());
  EXPECT_EQ(kept->Get("/2").status, 200);  // it has the longer idle time-out
  EXPECT_EQ(Value("hippodrome_http_connections_timed_out_total"), 1);
}

TEST_P(HttpLimitsTest, SlowBodiesAreCutOff) {
  options_.body_timeout = std::chrono::seconds(1);
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.Send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nx");
  EXPECT_EQ(client.Read().status, 408);
  EXPECT_TRUE(client.Closed());
  EXPECT_EQ(Value("hippodrome_requests_total", Refusals(408)), 1);
  EXPECT_EQ(Value("hippodrome_request_failures_total", "{reason=\"deadline\"}"), 1);
  EXPECT_EQ(BodyBytes(), 0);
}

// Leaves this process, which is the clients' too, `count` more descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(int count) {
    std::vector<int> free;
    for (int i = 0; i < count; ++i) free.push_back(::dup(0));
    const rlim_t most = static_cast<rlim_t>(free.back()) + 1;
    for (const int descriptor : free) ::close(descriptor);
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{most, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_;
};

TEST_P(HttpLimitsTest, WithoutDescriptorsAnIdleConnectionMakesRoom) {
  Start();
  const auto kept = Connect();
  EXPECT_EQ(kept->Get("/1").status, 200);
  // Given up where the next one is to find a descriptor too.
  const auto second = Connect();
  EXPECT_EQ(second->Get("/1").status, 200);
  const FewDescriptors few(1);
  EXPECT_EQ(Connect()->Get("/2").status, 200);
  EXPECT_TRUE(kept->Closed());
}

TEST_P(HttpLimitsTest, AcceptsAgainWhenThereAreDescriptors) {
  Start();
  const auto busy = Begin("/later");
  std::unique_ptr<HttpClient> waiting;
  {
    const FewDescriptors few(1);
    waiting = Connect();
    // The server has tried in vain, once at least, when this is over; else the test shows nothing.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(Value("hippodrome_http_connections"), 1);
  }
  EXPECT_EQ(waiting->Get("/2").status, 200);
}

// ---- Bodies -------------------------------------------------------------------------------------

TEST_P(HttpLimitsTest, OpenBodiesHoldNoMoreThanTheirBudget) {
  options_.max_body_bytes_total = 8 * kMegabyte;
  Start();
  const std::string head =
      "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(7 * kMegabyte) +
      "\r\n\r\n";
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(Connect());
    clients.back()->Send(head + std::string(kMegabyte, 'x'));
  }
  // Those beyond the budget are told so; whoever has sent little is not among them.
  EXPECT_TRUE(WaitUntil([&] { return Value("hippodrome_requests_total", Refusals(503)) >= 4; }));
  EXPECT_LE(BodyBytes(), 8 * kMegabyte + 12 * 65536);
  EXPECT_EQ(Connect()->Post("/a", std::string(65536, 'x')).status, 200);
  const HttpAnswer refused = Connect()->Post("/a", std::string(8 * kMegabyte, 'x'));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  clients.clear();
  EXPECT_TRUE(WaitUntil([&] { return BodyBytes() == 0; }));
  EXPECT_EQ(Connect()->Post("/a", std::string(8 * kMegabyte, 'x')).status, 200);
  EXPECT_TRUE(WaitUntil([&] { return BodyBytes() == 0; }));
}

TEST_P(HttpLimitsTest, WhoAnnouncesMuchHoldsLittle) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.Send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\nx");
  EXPECT_TRUE(WaitUntil([&] { return BodyBytes() > 0; }));
  EXPECT_EQ(BodyBytes(), 65536);
}

TEST_P(HttpLimitsTest, ASmallBodyWaitsForNoLargeOne) {
  hold_ = true;
  Start();
  std::vector<std::unique_ptr<HttpClient>> large;
  for (int i = 0; i < 4; ++i) {
    large.push_back(Connect());
    large.back()->SendRequest("POST", "/slow", std::string(2 * kMegabyte, 'x'));
  }
  EXPECT_TRUE(WaitUntil([&] { return slow_ == 1; }));
  EXPECT_EQ(Connect()->Post("/a", std::string(70000, 'x')).body, "/a 70000");
  hold_ = false;
  for (const auto& client : large) EXPECT_EQ(client->Read().status, 200);
}

TEST_P(HttpLimitsTest, ALargeBodyWhoseClientLeftIsNotHandled) {
  hold_ = true;
  Start();
  const auto running = Connect();
  running->SendRequest("POST", "/slow", std::string(2 * kMegabyte, 'x'));
  EXPECT_TRUE(WaitUntil([&] { return slow_ == 1; }));
  const double base = BodyBytes();
  for (const bool reset : {false, true}) {
    const auto client = Connect();
    client->SendRequest("POST", "/slow", std::string(2 * kMegabyte, 'x'));
    EXPECT_TRUE(WaitUntil([&] { return BodyBytes() >= base + 2.0 * kMegabyte; }));
    if (reset) {
      client->Reset();
    } else {
      client->Close();
    }
    EXPECT_TRUE(WaitUntil([&] { return BodyBytes() == base; }));
  }
  EXPECT_TRUE(WaitUntil([&] { return Value("hippodrome_requests_total", Refusals(499)) == 2; }));
  hold_ = false;
  EXPECT_EQ(running->Read().status, 200);
  EXPECT_EQ(slow_, 1);
}

// ---- Clients that leave -------------------------------------------------------------------------

TEST_P(HttpLimitsTest, AnEndIsSeenBehindWhatWasSentAhead) {
  Start();
  for (const char* path : {"/later", "/stream"}) {
    for (const size_t ahead : {0, 1, 80 << 10, 1 << 20, 4 << 20}) {
      for (const bool reset : {false, true}) {
        const auto client = Begin(path);
        client->Send(std::string(ahead, 'x'));
        if (reset) {
          client->Reset();
        } else {
          client->Close();
        }
        EXPECT_TRUE(Gone()) << path << " " << ahead;
      }
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return BodyBytes() == 0; }));
}

TEST_P(HttpLimitsTest, WhoSendsAheadWithoutEndIsCutOff) {
  Start();
  const auto client = Begin("/later");
  std::thread flood([&] { client->Send(std::string(64 << 20, 'x')); });
  EXPECT_TRUE(Gone());
  flood.join();
  EXPECT_TRUE(WaitUntil([&] { return BodyBytes() == 0; }));
}

TEST_P(HttpLimitsTest, WhatWasSentAheadIsAnsweredLater) {
  Start();
  const auto client = Begin("/later");
  for (int i = 0; i < 100; ++i) client->SendRequest("POST", "/a", std::string(20000, 'x'));
  EXPECT_TRUE(WaitUntil([&] { return BodyBytes() >= 2000000; }));
  control_->Add("done", true);
  EXPECT_EQ(client->Read().body, "done");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client->Read().body, "/a 20000");
  EXPECT_TRUE(WaitUntil([&] { return BodyBytes() == 0; }));
}

TEST_P(HttpLimitsTest, HalfAConnectionGetsItsAnswer) {
  Start();
  for (const char* path : {"/later", "/stream"}) {
    for (const size_t size : {10, 100000}) {
      const auto client = Begin(path, std::string(size, 'x'));
      client->SendRequest("GET", "/next", "");
      client->HalfClose();
      // Were it taken as gone, this would be the time.
      EXPECT_EQ(Connect()->Get("/1").status, 200);
      control_->Add("done", true);
      EXPECT_TRUE(client->Read().body.ends_with("done")) << path;
      EXPECT_EQ(client->Read().body, "/next 0");
      EXPECT_TRUE(client->Closed());
    }
  }
}

TEST_P(HttpLimitsTest, AnEndThatComesWithTheAnswerEndsTheConnection) {
  options_.idle_timeout = std::chrono::seconds(20);
  Start();
  for (int i = 0; i < 300; ++i) {
    const auto client = Begin("/later");
    std::thread answer([&] { control_->Add("done", true); });
    client->HalfClose();
    answer.join();
    EXPECT_EQ(client->Read().body, "done");
    EXPECT_TRUE(client->Closed());
  }
  EXPECT_EQ(Value("hippodrome_http_connections_timed_out_total"), 0);
}

TEST_P(HttpLimitsTest, HalfAConnectionThatIsClosedIsGone) {
  Start();
  for (const char* path : {"/later", "/stream"}) {
    const auto client = Begin(path);
    client->HalfClose();
    EXPECT_EQ(Connect()->Get("/1").status, 200);
    EXPECT_FALSE(control_->WasDestroyed());
    client->Reset();
    EXPECT_TRUE(Gone()) << path;
  }
}

TEST_P(HttpLimitsTest, Http10HasNoHalfConnections) {
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.Send("GET /later HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(WaitUntil([&] { return control_->Started(); }));
  client.HalfClose();
  EXPECT_TRUE(Gone());
}

// ---- What is counted ----------------------------------------------------------------------------

TEST_P(HttpLimitsTest, WhoLeavesWithinARequestIsCounted) {
  Start();
  Connect()->Send("GET /a HT");
  for (const bool reset : {false, true}) {
    const auto client = Connect();
    client->Send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx");
    EXPECT_TRUE(WaitUntil([&] { return BodyBytes() > 0; }));
    if (reset) {
      client->Reset();
    } else {
      client->Close();
    }
    EXPECT_TRUE(WaitUntil([&] { return BodyBytes() == 0; }));
  }
  // Not those who leave between requests.
  EXPECT_EQ(Connect()->Get("/a").status, 200);
  Connect()->Close();
  EXPECT_TRUE(WaitUntil([&] { return Value("hippodrome_http_connections") == 0; }));
  EXPECT_EQ(Value("hippodrome_requests_total", Refusals(499)), 3);
}

// Pages may read why they were refused, whatever refused them.
TEST_P(HttpLimitsTest, RefusalsSayWhichPagesMayReadThem) {
  options_.cors_origins = {"http://a"};
  options_.max_body_bytes = 1000;
  Start();
  struct Row {
    std::string fields;
    int status;
  };
  const Row rows[] = {
      {"Content-Length: 1x\r\n\r\n", 400},
      {"Content-Length: 1001\r\n\r\n", 413},
      {"Content-Encoding: gzip\r\n\r\n", 415},
      {"X: " + std::string(20000, 'x'), 431},
  };
  for (const Row& row : rows) {
    for (const bool allowed : {true, false}) {
      const std::string origin = allowed ? "http://a" : "http://b";
      HttpClient client(server_->address(), tls_.client);
      client.Send("POST /a HTTP/1.1\r\nHost: h\r\nOrigin: " + origin + "\r\n" + row.fields);
      const HttpAnswer answer = client.Read();
      EXPECT_EQ(answer.status, row.status);
      EXPECT_EQ(answer.headers.at("vary"), "Origin") << row.status;
      EXPECT_EQ(answer.headers.count("access-control-allow-origin"), allowed ? 1u : 0u)
          << row.status;
    }
  }
}

TEST_P(HttpLimitsTest, ARefusalForWantOfMemorySaysWhenToTryAgain) {
  options_.cors_origins = {"*"};
  options_.max_body_bytes_total = 0;
  Start();
  HttpClient client(server_->address(), tls_.client);
  client.Send("POST /a HTTP/1.1\r\nHost: h\r\nOrigin: http://a\r\nContent-Length: 70000\r\n\r\n");
  const HttpAnswer answer = client.Read();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  EXPECT_EQ(answer.headers.at("access-control-allow-origin"), "*");
  EXPECT_NE(answer.headers.at("access-control-expose-headers").find("Retry-After"),
            std::string::npos);
}

TEST_P(HttpLimitsTest, CountersBeginAtZero) {
  Start();
  for (const char* reason : {"overloaded", "validation", "deadline", "cancelled", "internal"}) {
    EXPECT_EQ(
        Value("hippodrome_request_failures_total", std::string("{reason=\"") + reason + "\"}"), 0);
  }
  for (const int code : {400, 408, 413, 414, 415, 417, 431, 499, 503, 505}) {
    EXPECT_EQ(Value("hippodrome_requests_total", Refusals(code)), 0);
  }
  EXPECT_EQ(Value("hippodrome_http_connections_evicted_total"), 0);
}

}  // namespace
}  // namespace hippodrome::http_limits_test
