#include "server/log/log_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

namespace hippodrome::log_line_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::chrono::system_clock::time_point kWhen{std::chrono::microseconds{1700000000000042}};

TEST(LogLineTest, IsAJsonObjectInOneLine) {
  LogLine line(LogLevel::kWarning, "reload", kWhen);
  line.Text("what", "keys").Integer("count", -3).Seconds("took_s", std::chrono::milliseconds(1500));
  EXPECT_EQ(line.Take(),
            R"({"ts":"2023-11-14T22:13:20.000042Z","level":"warning","event":"reload",)"
            R"("what":"keys","count":-3,"took_s":1.500000})"
            "\n");
}

TEST(LogLineTest, NothingBreaksOutOfIt) {
  const std::string hostile =
      std::string("a\"b\\c\r\n\t\x1b[31m\x7f\0d", 17) + "\xc3\xa9\xff\xe2\x80";
  LogLine line(LogLevel::kInfo, "x", kWhen);
  line.Text("value", hostile);
  const std::string text = line.Take();
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  for (const char c : text.substr(0, text.size() - 1)) EXPECT_TRUE(c >= ' ' && c <= '~') << text;
  const auto json = nlohmann::json::parse(text);
  EXPECT_THAT(json["value"].get<std::string>(), HasSubstr("a\"b\\c\r\n\t\x1b[31m"));
}

TEST(LogLineTest, LongTextsAreCut) {
  LogLine line(LogLevel::kInfo, "x", kWhen);
  line.Text("value", std::string(100000, '\x01'));
  for (int i = 0; i < 100; ++i) line.Text("more", std::string(400, 'y'));
  const std::string text = line.Take();
  EXPECT_LE(text.size(), LogLine::kMostBytes);
  EXPECT_TRUE(nlohmann::json::accept(text)) << text;
}

TEST(LogLineTest, ATextCutWithinACharacterIsStillJson) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "\xe2\x82\xac";
  LogLine line(LogLevel::kInfo, "x", kWhen);
  const std::string written = line.Text("value", text).Take();
  EXPECT_TRUE(nlohmann::json::accept(written)) << written;
}

}  // namespace
}  // namespace hippodrome::log_line_test
