#include "server/http/http_head.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hippodrome::http_head_test {
namespace {

RequestHead Parse(const std::string& text) {
  RequestHead head;
  const auto refusal = ParseHead(text, head);
  EXPECT_FALSE(refusal) << text << refusal->message;
  return head;
}

// 0: it was taken.
int Refused(const std::string& text) {
  RequestHead head;
  const auto refusal = ParseHead(text, head);
  return refusal ? refusal->status : 0;
}

TEST(HttpHeadTest, WhatStandsInIt) {
  const RequestHead head =
      Parse("POST /a/b%2f?x=1 HTTP/1.1\r\nHOST: h:80\r\nX-A:\t v \r\nContent-Length: 012\r\n\r\n");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/a/b%2f");
  EXPECT_EQ(*head.Find("host"), "h:80");
  EXPECT_EQ(*head.Find("x-a"), "v");
  EXPECT_EQ(head.Find("x-b"), nullptr);
  EXPECT_EQ(head.content_length, 12);
  EXPECT_FALSE(head.chunked);
  EXPECT_TRUE(head.http11);
  EXPECT_TRUE(head.keep_alive);
}

TEST(HttpHeadTest, FormsOfTheTarget) {
  const auto path = [](const std::string& target) {
    return Parse("OPTIONS " + target + " HTTP/1.1\r\nHost: h\r\n\r\n").path;
  };
  EXPECT_EQ(path("/"), "/");
  EXPECT_EQ(path("/a?b?c"), "/a");
  EXPECT_EQ(path("http://other:8080/a/b?c"), "/a/b");
  EXPECT_EQ(path("HTTPS://[::1]:8080/a"), "/a");
  EXPECT_EQ(path("http://other"), "/");
  EXPECT_EQ(path("http://other?x=/y"), "/");
  EXPECT_EQ(path("*"), "*");
}

TEST(HttpHeadTest, WhetherTheConnectionIsKept) {
  const auto kept = [](const std::string& version, const std::string& connection) {
    return Parse("GET / HTTP/" + version + "\r\nHost: h\r\nConnection: " + connection + "\r\n\r\n")
        .keep_alive;
  };
  EXPECT_TRUE(kept("1.1", ""));
  EXPECT_FALSE(kept("1.1", "Close"));
  EXPECT_FALSE(kept("1.1", "upgrade, close"));
  EXPECT_FALSE(kept("1.0", ""));
  EXPECT_TRUE(kept("1.0", "Keep-Alive"));
  EXPECT_FALSE(Parse("GET / HTTP/1.0\r\n\r\n").keep_alive);
}

TEST(HttpHeadTest, ALengthBeyondAllNumbersIsStillOne) {
  const std::string digits(60, '9');
  EXPECT_EQ(
      Parse("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: " + digits + "\r\n\r\n").content_length,
      INT64_MAX);
}

TEST(HttpHeadTest, Limits) {
  const std::string start = "GET / HTTP/1.1\r\nHost: h\r\n";
  std::string fields;
  for (size_t i = 1; i < kMaxFields; ++i) fields += "X: y\r\n";
  EXPECT_EQ(Refused(start + fields + "\r\n"), 0);
  EXPECT_EQ(Refused(start + fields + "X: y\r\n\r\n"), 431);
  const std::string path(kMaxTargetBytes - 1, 'x');
  EXPECT_EQ(Refused("GET /" + path + " HTTP/1.1\r\nHost: h\r\n\r\n"), 0);
  EXPECT_EQ(Refused("GET /x" + path + " HTTP/1.1\r\nHost: h\r\n\r\n"), 414);
  EXPECT_EQ(HeadTooLarge("GET /xxx", 8).status, 414);
  EXPECT_EQ(HeadTooLarge("GET / HTTP/1.1\r\nX: x", 8).status, 431);
}

TEST(HttpHeadTest, TheEndIsFoundWhereverItIsCut) {
  const std::string text = "GET / HTTP/1.1\r\n\r\nGET";
  for (size_t come = 0; come <= text.size(); ++come) {
    std::optional<size_t> end;
    size_t searched = 0;
    for (const size_t size : {come, text.size()}) {
      end = FindHeadEnd(std::string_view(text).substr(0, size), searched);
      if (end) break;
      searched = size;
    }
    EXPECT_EQ(end, 18u) << come;
  }
  EXPECT_EQ(FindHeadEnd("GET / HTTP/1.1\r\n\r", 0), std::nullopt);
}

}  // namespace
}  // namespace hippodrome::http_head_test
