#include "server/access/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::key_file_test {
namespace {

using testing::HasSubstr;

std::string Hash(const std::string& secret) { return ToHex(DigestOf(secret)); }

// The members of an only key, behind its name and secret.
std::string File(const std::string& more) {
  return R"({"keys": [{"name": "a", "secrets": [{"sha256": ")" + Hash("a") + "\"}]" + more + "}]}";
}

std::string Error(const std::string& text) { return Message(ParseApiKeys(text).status()); }

TEST(KeyFileTest, KeysHaveNamesSecretsLimitsAndModels) {
  const auto keys = ParseApiKeys(R"({"keys": [
      {"name": "alice.1_x-Y", "admin": true, "models": ["h3", "bigs"],
       "secrets": [{"sha256": ")" +
                                 Hash("old") + R"(", "expires": "2030-01-31"},
                   {"sha256": ")" +
                                 Hash("new") + R"(", "expires": "2031-02-03T04:05:06Z"}],
       "limits": {"requests_per_minute": 60, "burst": 5, "calls": 2, "tokens": 1000,
                  "bytes": 1e9}},
      {"name": "bob", "secrets": [{"sha256": ")" +
                                 Hash("bob") + R"("}]}]})");
  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_EQ(keys->size(), 2u);
  const ApiKey& alice = keys->front();
  EXPECT_EQ(alice.name, "alice.1_x-Y");
  EXPECT_TRUE(alice.admin);
  EXPECT_THAT(*alice.models, testing::ElementsAre("h3", "bigs"));
  ASSERT_EQ(alice.secrets.size(), 2u);
  EXPECT_EQ(alice.secrets[0].digest, DigestOf("old"));
  EXPECT_EQ(alice.secrets[0].expires, absl::FromUnixSeconds(1896048000));
  EXPECT_EQ(alice.secrets[1].expires, absl::FromUnixSeconds(1927857906));
  EXPECT_EQ(alice.limits.requests_per_minute, 60);
  EXPECT_EQ(alice.limits.burst, 5);
  EXPECT_EQ(alice.limits.calls, 2);
  EXPECT_EQ(alice.limits.tokens, 1000);
  EXPECT_EQ(alice.limits.bytes, 1000000000);
  const ApiKey& bob = keys->back();
  EXPECT_FALSE(bob.admin);
  EXPECT_FALSE(bob.models.has_value());
  EXPECT_FALSE(bob.limits.calls.has_value());
  EXPECT_EQ(bob.secrets[0].expires, absl::InfiniteFuture());
}

TEST(KeyFileTest, ErrorsNameTheKeyAndTheField) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "the file is not valid JSON"},
      {"[]", "the file must be a JSON object"},
      {"{}", "keys: missing"},
      {R"({"keys": []})", "keys: 0 entries, expected 1 to 1000"},
      {R"({"keys": {}})", "keys: expected an array"},
      {R"({"keys": [1]})", "keys[0]: key: expected an object"},
      {R"({"keys": [{}]})", "keys[0]: name: missing"},
      {R"({"keys": [{"name": "a b"}]})", "keys[0]: name: expected 1 to 64 of"},
      {R"({"keys": [{"name": "a\n"}]})", "keys[0]: name: expected 1 to 64 of"},
      {R"({"keys": [{"name": "a"}]})", "keys[0] 'a': secrets: missing"},
      {R"({"keys": [{"name": "a", "secrets": [{}]}]})", "keys[0] 'a': sha256: missing"},
      {R"({"keys": [{"name": "a", "secrets": [{"sha256": "12"}]}]})",
       "keys[0] 'a': sha256: expected 64 hexadecimal digits"},
      {R"({"keys": [{"name": "a", "name": "b"}]})", "name: it is there twice"},
      {R"({"more": 1, "keys": []})", "more: unknown; expected keys"},
      {File(R"(, "key": "hk-1")"), "keys[0] 'a': key: unknown; expected name, secrets"},
      {File(R"(, "admin": "yes")"), "keys[0] 'a': admin: expected true or false"},
      {File(R"(, "admin": null)"), "keys[0] 'a': admin: expected a value, found null"},
      {File(R"(, "models": [])"), "keys[0] 'a': models: 0 entries"},
      {File(R"(, "models": [7])"), "keys[0] 'a': models: expected names"},
      {File(R"(, "limits": [])"), "keys[0] 'a': limits: expected an object"},
      {File(R"(, "limits": {"rate": 1})"), "keys[0] 'a': rate: unknown; expected requests_per_min"},
      {File(R"(, "limits": {"calls": 0})"), "keys[0] 'a': calls: 0, expected 1 to 1000000"},
      {File(R"(, "limits": {"tokens": 1.5})"), "keys[0] 'a': tokens: expected an integer"},
      {File(R"(, "limits": {"burst": 3})"), "keys[0] 'a': burst: it needs requests_per_minute"}};
  for (const auto& [text, message] : cases) EXPECT_THAT(Error(text), HasSubstr(message)) << text;
}

TEST(KeyFileTest, ABadDateIsAnError) {
  for (const char* date : {"", "tomorrow", "2030-13-01", "2030-01-31T12:00:00", "1896048000"}) {
    const std::string text = R"({"keys": [{"name": "a", "secrets": [{"sha256": ")" + Hash("a") +
                             R"(", "expires": ")" + date + "\"}]}]}";
    EXPECT_THAT(Error(text), HasSubstr("keys[0] 'a': expires: '")) << date;
  }
}

TEST(KeyFileTest, NamesAndSecretsAreThereOnce) {
  const auto two = [](const std::string& name, const std::string& secret) {
    return R"({"keys": [{"name": "a", "secrets": [{"sha256": ")" + Hash("a") +
           R"("}]}, {"name": ")" + name + R"(", "secrets": [{"sha256": ")" + Hash(secret) +
           "\"}]}]}";
  };
  EXPECT_TRUE(ParseApiKeys(two("b", "b")).ok());
  EXPECT_THAT(Error(two("a", "b")), HasSubstr("keys[1] 'a': name: there is another key"));
  EXPECT_THAT(Error(two("b", "a")), HasSubstr("keys[1] 'b': sha256: the same secret"));
}

TEST(KeyFileTest, ErrorsRepeatNoHash) {
  const std::string text = File(R"(, "admin": 1)");
  EXPECT_EQ(Error(text).find(Hash("a").substr(0, 8)), std::string::npos);
}

TEST(KeyFileTest, TheFileIsForItsOwnerAndGroup) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/keys.json";
  EXPECT_THAT(Message(ReadApiKeys(path).status()), HasSubstr("keys.json: No such file"));
  EXPECT_THAT(Message(ReadApiKeys(directory.path()).status()), HasSubstr("not a file"));
  std::ofstream(path) << File("");
  for (const mode_t mode : {0600, 0400, 0640, 0440}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(ReadApiKeys(path).ok()) << mode;
  }
  for (const mode_t mode : {0644, 0660, 0604, 0602, 0601}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_THAT(Message(ReadApiKeys(path).status()), HasSubstr("chmod 640")) << mode;
  }
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  std::ofstream(path) << "{";
  EXPECT_THAT(Message(ReadApiKeys(path).status()), HasSubstr("keys.json: the file is not valid"));
}

TEST(KeyFileTest, AnEntryIsReadAsItIsWritten) {
  for (const bool admin : {false, true}) {
    const auto keys = ParseApiKeys("{\"keys\": [" + KeyEntry("me", DigestOf("hk-1"), admin) + "]}");
    ASSERT_TRUE(keys.ok()) << keys.status();
    EXPECT_EQ(keys->front().name, "me");
    EXPECT_EQ(keys->front().admin, admin);
    EXPECT_EQ(keys->front().secrets.front().digest, DigestOf("hk-1"));
  }
}

}  // namespace
}  // namespace hippodrome::key_file_test
