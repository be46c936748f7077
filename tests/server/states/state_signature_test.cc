#include "server/states/state_signature.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tests/testing/saved_states.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::state_signature_test {
namespace {

TEST(StateSignatureTest, IsHmacOfAllParts) {
  // RFC 4231, test case 2, in parts.
  const std::string one = "what do ya want ", two = "for nothing?";
  const std::vector<std::span<const std::byte>> parts = {
      std::as_bytes(std::span(one)), {}, std::as_bytes(std::span(two))};
  EXPECT_EQ(HmacSha256("Jefe")(parts),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(StateSignatureTest, OtherKeysAndChangedFilesAreRefused) {
  const std::string bytes =
      WriteStateFile(SmallState(5), SmallStateLayout(), {.sign = HmacSha256("secret")}).value();
  EXPECT_TRUE(ReadStateFile(bytes, SmallStateLayout(), {.sign = HmacSha256("secret")}).ok());
  const auto other = ReadStateFile(bytes, SmallStateLayout(), {.sign = HmacSha256("Secret")});
  EXPECT_TRUE(absl::IsInvalidArgument(other.status())) << other.status();
}

TEST(StateSignatureTest, KeysAreLongAndForTheirOwnerAlone) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/key";
  const std::string key(32, 'k');
  const auto read = [&](const std::string& text, mode_t mode) {
    folder.Write("key", text);
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return ReadStateKey(path);
  };
  EXPECT_EQ(read(key, 0600).value(), key);
  EXPECT_EQ(read(key + "\n", 0640).value(), key);
  for (const mode_t mode : {0644, 0660}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(read(key, mode).status())) << mode;
  }
  for (const std::string& text :
       {std::string(), std::string("\n"), key.substr(1) + "\n", std::string(1025, 'k')}) {
    const absl::Status status = read(text, 0600).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message().find("kkk"), std::string::npos) << status;
  }
  EXPECT_FALSE(ReadStateKey(folder.path() + "/none").ok());
}

}  // namespace
}  // namespace hippodrome::state_signature_test
