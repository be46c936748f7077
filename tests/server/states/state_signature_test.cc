#include "server/states/state_signature.h"

#include <gtest/gtest.h>

#include "tests/testing/saved_states.h"

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

}  // namespace
}  // namespace hippodrome::state_signature_test
