#include "server/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace hippodrome::page_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::map<std::string, std::string> Headers(const HttpReply& reply) {
  return {reply.response.headers.begin(), reply.response.headers.end()};
}

TEST(PageTest, IsOneFileThatNeedsNoOther) {
  const HttpReply reply = Page().Answer(HttpRequest());
  EXPECT_EQ(reply.response.status, 200);
  EXPECT_EQ(reply.response.content_type, "text/html; charset=utf-8");
  const std::string& body = reply.response.body;
  EXPECT_THAT(body, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(body, testing::EndsWith("</html>\n"));
  EXPECT_LT(body.size(), 60000);
  // Each source has come into its place.
  EXPECT_THAT(body, AllOf(HasSubstr("new Writer()"), HasSubstr("--accent"), Not(HasSubstr("{{"))));
  EXPECT_THAT(body, Not(HasSubstr("src=")));
  EXPECT_THAT(body, Not(HasSubstr("@import")));
  EXPECT_THAT(body, Not(HasSubstr("url(")));
  EXPECT_THAT(body, Not(HasSubstr("https:")));
  // What policies forbid anyway, lest it be written and found not to work.
  EXPECT_THAT(body, Not(HasSubstr("innerHTML")));
  EXPECT_THAT(body, Not(HasSubstr(" style=\"")));
}

TEST(PageTest, LetsBrowsersRunNothingElse) {
  const auto headers = Headers(Page().Answer(HttpRequest()));
  const std::string& policy = headers.at("Content-Security-Policy");
  EXPECT_THAT(policy, testing::StartsWith("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(policy, ContainsRegex("script-src 'sha256-[A-Za-z0-9+/]+=';"));
  EXPECT_THAT(policy, ContainsRegex("style-src 'sha256-[A-Za-z0-9+/]+=';"));
  for (const char* rule : {"connect-src 'self';", "base-uri 'none';", "form-action 'none';",
                           "frame-ancestors 'none';"}) {
    EXPECT_THAT(policy, HasSubstr(rule));
  }
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_EQ(headers.at("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(headers.at("Referrer-Policy"), "no-referrer");
}

TEST(PageTest, IsNotSentAgainToWhoHasIt) {
  const Page page;
  HttpRequest request;
  const std::string tag = Headers(page.Answer(request)).at("ETag");
  request.headers["if-none-match"] = "\"other\", W/" + tag;
  const HttpReply same = page.Answer(request);
  EXPECT_EQ(same.response.status, 304);
  EXPECT_EQ(same.response.body, "");
  EXPECT_EQ(Headers(same).at("ETag"), tag);
  request.headers["if-none-match"] = "\"other\"";
  EXPECT_EQ(page.Answer(request).response.status, 200);
}

}  // namespace
}  // namespace hippodrome::page_test
