// Requests as RFC 9112 allows and forbids them, byte by byte.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "server/http/chunked_body.h"
#include "server/http/http_head.h"
#include "server/http/http_server.h"
#include "tests/testing/http_client.h"

namespace hippodrome::http_rules_test {
namespace {

class HttpRulesTest : public testing::Test {
 protected:
  HttpRulesTest() {
    HttpOptions options;
    options.address = "127.0.0.1:0";
    options.max_body_bytes = 100000;
    server_ = HttpServer::Start(
                  options,
                  [this](const HttpRequest& request) {
                    ++handled_;
                    HttpReply reply;
                    reply.response.body = request.method + " " + request.path + " " + request.body;
                    return reply;
                  },
                  &metrics_)
                  .value();
  }

  Metrics metrics_;
  std::atomic<int> handled_ = 0;
  std::unique_ptr<HttpServer> server_;
};

const std::string kSmuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";

// What is refused ends the connection, and nothing behind it is taken for a request.
TEST_F(HttpRulesTest, WhatIsRefused) {
  struct Row {
    std::string head;  // behind "POST /a HTTP/1.1\r\n", or with another request line
    int status;
    std::string body = "";
  };
  const auto line = [](const std::string& request_line) {
    return request_line + "\r\nHost: h\r\n";
  };
  const auto field = [](const std::string& fields) {
    return "POST /a HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
  };
  const std::string chunk = "1\r\nx\r\n0\r\n\r\n";
  std::string many_fields;
  for (size_t i = 0; i < kMaxFields; ++i) many_fields += "\r\nX: y";
  const Row rows[] = {
      // What could be read as another request's beginning.
      {field("Transfer-Encoding: xchunked"), 400, chunk},
      {field("Transfer-Encoding: chunked, identity"), 400, chunk},
      {field("Transfer-Encoding: identity, chunked"), 400, chunk},
      {field("Transfer-Encoding: gzip, chunked"), 400, chunk},
      {field("Transfer-Encoding: chunked, chunked"), 400, chunk},
      {field("Transfer-Encoding: chunked;q=1"), 400, chunk},
      {field("Transfer-Encoding: \x0b"
             "chunked"),
       400, chunk},
      {field("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400, chunk},
      {field("Transfer-Encoding:"), 400, chunk},
      {field("Transfer-Encoding : chunked"), 400, chunk},
      {"POST /a HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n", 400, chunk},
      {field("Content-Length: 11\r\nTransfer-Encoding: chunked"), 400, chunk},
      {field("Transfer-Encoding: chunked\r\nContent-Length: 11"), 400, chunk},
      {field("Content-Length: 1\r\nContent-Length: 2"), 400, "xy"},
      {field("Content-Length: 2\r\nContent-Length: 2"), 400, "xy"},
      {field("Content-Length: 2, 2"), 400, "xy"},
      {field("Content-Length: +2"), 400, "xy"},
      {field("Content-Length: -2"), 400, "xy"},
      {field("Content-Length: 0x2"), 400, "xy"},
      {field("Content-Length: 2 2"), 400, "xy"},
      {field("Content-Length:"), 400, "xy"},
      {field("Content-Length: 100001"), 413},
      {field("Content-Length: 99999999999999999999999999"), 413},
      {field("X: a\r\n b"), 400},
      {field("X: a\r\n\tb"), 400},
      {field("X: a\nY: b"), 400},
      {field("X: a\rY: b"), 400},
      {field(std::string("X: \0", 4)), 400},
      {field(": x"), 400},
      {field("X"), 400},
      {field("X Y: z"), 400},
      {field("X\x80: z"), 400},
      // Hosts.
      {"POST /a HTTP/1.1\r\n", 400},
      {"POST /a HTTP/1.1\r\nHost: h\r\nHost: h\r\n", 400},
      {"POST /a HTTP/1.1\r\nHost: h/x\r\n", 400},
      {"POST /a HTTP/1.1\r\nHost: a@b\r\n", 400},
      {"POST /a HTTP/1.1\r\nHost: a b\r\n", 400},
      {"POST http://h/a HTTP/1.1\r\n", 400},
      // Request lines.
      {line("POST  /a HTTP/1.1"), 400},
      {line("POST /a  HTTP/1.1"), 400},
      {line("POST /a b HTTP/1.1"), 400},
      {line("POST\t/a HTTP/1.1"), 400},
      {line("POST /a"), 400},
      {line("POST a HTTP/1.1"), 400},
      {line("POST * HTTP/1.1"), 400},
      {line("POST /a#b HTTP/1.1"), 400},
      {line("POST /\x80 HTTP/1.1"), 400},
      {line("POST http:///a HTTP/1.1"), 400},
      {line("POST ftp://h/a HTTP/1.1"), 400},
      {line("CONNECT h:80 HTTP/1.1"), 400},
      {line("P(ST /a HTTP/1.1"), 400},
      {line("POST /a HTTP/1.1 "), 400},
      {line("POST /a http/1.1"), 400},
      {line("POST /a HTTP/1.2"), 505},
      {line("PRI * HTTP/2.0"), 505},
      {line("POST /" + std::string(9000, 'x') + " HTTP/1.1"), 414},
      {line("POST /" + std::string(20000, 'x') + " HTTP/1.1"), 414},
      {field("X: " + std::string(20000, 'x')), 431},
      {field("X: y" + many_fields), 431},
      // Chunks.
      {field("Transfer-Encoding: chunked"), 400, "x\r\n"},
      {field("Transfer-Encoding: chunked"), 400, "1\r\nxy0\r\n\r\n"},
      {field("Transfer-Encoding: chunked"), 400, "1\nx\r\n0\r\n\r\n"},
      {field("Transfer-Encoding: chunked"), 413, "186a1\r\n" + std::string(100001, 'x')},
      // Meanings.
      {field("Content-Encoding: gzip\r\nContent-Length: 1"), 415, "x"},
      {field("Content-Encoding: identity, gzip\r\nContent-Length: 1"), 415, "x"},
      {field("Expect: the-unexpected\r\nContent-Length: 1"), 417, "x"},
  };
  int expected = 0;
  for (const Row& row : rows) {
    HttpClient client(server_->address());
    client.Send(row.head + "\r\n" + row.body + kSmuggled);
    const HttpAnswer answer = client.Read();
    EXPECT_EQ(answer.status, row.status) << row.head.substr(0, 200) << answer.body;
    EXPECT_EQ(answer.headers.at("connection"), "close");
    EXPECT_TRUE(client.Closed()) << row.head.substr(0, 200);
    ++expected;
  }
  EXPECT_EQ(handled_, 0);
  int counted = 0;
  for (const int code : {400, 413, 414, 415, 417, 431, 505}) {
    const std::string series = "hippodrome_requests_total{api=\"http\",code=\"" +
                               std::to_string(code) + "\",model=\"\",route=\"none\"} ";
    const std::string text = metrics_.Text();
    const size_t at = text.find(series);
    ASSERT_NE(at, std::string::npos) << code;
    counted += std::stoi(text.substr(at + series.size()));
  }
  EXPECT_EQ(counted, expected);
}

TEST_F(HttpRulesTest, WhatIsTaken) {
  struct Row {
    std::string request;
    std::string body;
  };
  const Row rows[] = {
      {"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a "},
      {"GET /a HTTP/1.1\r\nhOsT:h\r\n\r\n", "GET /a "},
      {"GET /a HTTP/1.1\r\nHost:\r\n\r\n", "GET /a "},
      {"GET /a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET /a "},
      {"GET http://other:80/a?b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a "},
      {"GET HTTP://other HTTP/1.1\r\nHost: h\r\n\r\n", "GET / "},
      {"\r\n\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a "},
      {"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * "},
      {"GET /%2e%2e//a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /%2e%2e//a "},
      {"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 003\r\n\r\nxyz", "POST /a xyz"},
      {"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "POST /a "},
      {"POST /a HTTP/1.1\r\nHost: h\r\nContent-Encoding: identity\r\nContent-Length: 1\r\n\r\nx",
       "POST /a x"},
      {"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nT: "
       "u\r\n\r\n",
       "POST /a x"},
      {"POST /a HTTP/1.1\r\nHost: h\r\nX: \x80\xff\t.\r\nContent-Length: 1\r\n\r\nx", "POST /a x"},
  };
  HttpClient client(server_->address());
  for (const Row& row : rows) {
    client.Send(row.request);
    const HttpAnswer answer = client.Read();
    EXPECT_EQ(answer.status, 200) << row.request;
    EXPECT_EQ(answer.body, row.body) << row.request;
  }
  // All at once, they are the same requests.
  std::string all;
  for (const Row& row : rows) all += row.request;
  client.Send(all);
  for (const Row& row : rows) EXPECT_EQ(client.Read().body, row.body);
}

TEST_F(HttpRulesTest, AContinuationIsAskedForOnce) {
  HttpClient client(server_->address());
  client.Send("POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n");
  std::string interim;
  ASSERT_TRUE(client.ReadLine(interim));
  EXPECT_EQ(interim, "HTTP/1.1 100 Continue");
  ASSERT_TRUE(client.ReadLine(interim));
  client.Send("x");
  EXPECT_EQ(client.Read().body, "POST /a x");
}

TEST_F(HttpRulesTest, TheAnswerToHeadHasNoBody) {
  HttpClient client(server_->address());
  client.Send("HEAD /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  std::string line, head;
  while (client.ReadLine(line) && !line.empty()) head += line + "\n";
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200")) << head;
  EXPECT_NE(head.find("Content-Length: 8"), std::string::npos) << head;
  EXPECT_TRUE(client.Closed());
}

TEST_F(HttpRulesTest, Http10ClosesUnlessAskedNotTo) {
  HttpClient client(server_->address());
  client.Send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.Read().body, "GET /a ");
  client.Send("GET /b HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.Read().body, "GET /b ");
  EXPECT_TRUE(client.Closed());
}

TEST_F(HttpRulesTest, AsManyChunksAsThereMayBe) {
  std::string body;
  for (int64_t i = 0; i < ChunkedDecoder::kMaxChunks; ++i) body += "1\r\nx\r\n";
  const std::string head = "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  HttpClient client(server_->address());
  client.Send(head + body + "0\r\n\r\n");
  EXPECT_EQ(client.Read().body.size(), 8u + ChunkedDecoder::kMaxChunks);
  client.Send(head + body + "1\r\nx\r\n0\r\n\r\n");
  EXPECT_EQ(client.Read().status, 413);
}

}  // namespace
}  // namespace hippodrome::http_rules_test
