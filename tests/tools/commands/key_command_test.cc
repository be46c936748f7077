// The command as it is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/access/key_file.h"
#include "tools/commands/commands.h"

namespace hippodrome::key_command_test {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code = 0;
  std::string out, error;
};

Outcome RunKey(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "key");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = KeyCommand(static_cast<int>(argv.size()), argv.data());
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.error = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(KeyCommandTest, ANewKeyIsASecretAndItsEntry) {
  for (const bool admin : {false, true}) {
    std::vector<std::string> arguments = {"new", "--name", "alice"};
    if (admin) arguments.emplace_back("--admin");
    const Outcome made = RunKey(arguments);
    ASSERT_EQ(made.code, 0) << made.error;
    const size_t line = made.out.find('\n');
    const std::string secret = made.out.substr(0, line);
    const std::string entry = made.out.substr(line + 1);
    const auto keys = ParseApiKeys("{\"keys\": [" + entry + "]}");
    ASSERT_TRUE(keys.ok()) << keys.status();
    EXPECT_EQ(keys->front().name, "alice");
    EXPECT_EQ(keys->front().admin, admin);
    EXPECT_EQ(keys->front().secrets.front().digest, DigestOf(secret));
    EXPECT_EQ(entry.find(secret), std::string::npos);
  }
}

TEST(KeyCommandTest, BadUsage) {
  const Outcome without = RunKey({"new"});
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.error, HasSubstr("--name"));
  const Outcome bad = RunKey({"new", "--name", "a b"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.error, HasSubstr("--name: expected 1 to 64 of"));
}

}  // namespace
}  // namespace hippodrome::key_command_test
