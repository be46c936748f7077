#include "server/access/key_secret.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace hippodrome::key_secret_test {
namespace {

TEST(KeySecretTest, IsKeptAsSha256) {
  EXPECT_EQ(ToHex(DigestOf("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(DigestFromHex(ToHex(DigestOf("abc"))), DigestOf("abc"));
  std::string upper = ToHex(DigestOf("abc"));
  std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
  EXPECT_EQ(DigestFromHex(upper), DigestOf("abc"));
  EXPECT_EQ(DigestFromHex(upper + "0"), std::nullopt);
  EXPECT_EQ(DigestFromHex("g" + upper.substr(1)), std::nullopt);
  EXPECT_EQ(DigestFromHex(""), std::nullopt);
}

TEST(KeySecretTest, NewOnesDifferAndCanBeSent) {
  std::set<std::string> secrets;
  for (int i = 0; i < 100; ++i) {
    const std::string secret = NewSecret().value();
    EXPECT_EQ(secret.size(), 3 + 43u) << secret;
    EXPECT_EQ(secret.substr(0, 3), "hk-");
    EXPECT_EQ(BearerSecret("Bearer " + secret), secret);
    secrets.insert(secret);
  }
  EXPECT_EQ(secrets.size(), 100u);
}

TEST(KeySecretTest, IsFoundAtEachPlaceAndNowhereElse) {
  std::vector<KeyDigest> digests;
  for (int i = 0; i < 50; ++i) digests.push_back(DigestOf(std::to_string(i)));
  for (size_t i = 0; i < digests.size(); ++i) {
    EXPECT_EQ(FindDigest(digests, DigestOf(std::to_string(i))), i);
    // One bit makes another digest, wherever it is.
    for (const size_t byte : {0, 15, 31}) {
      KeyDigest near = digests[i];
      near[byte] ^= 1;
      EXPECT_EQ(FindDigest(digests, near), std::nullopt);
    }
  }
  EXPECT_EQ(FindDigest({}, digests[0]), std::nullopt);
}

TEST(KeySecretTest, AuthorizationIsBearerAndASecret) {
  EXPECT_EQ(BearerSecret("Bearer x"), "x");
  EXPECT_EQ(BearerSecret("bEARER x-y_z.=/+~"), "x-y_z.=/+~");
  EXPECT_EQ(BearerSecret("Bearer   x"), "x");
  for (const char* wrong :
       {"", "x", "Bearer", "Bearer ", "Bearer  ", "Basic x", "Bearerx", "Bearer x y",
        "Bearer x, Bearer x", "Bearer x,y", "Bearer x\ty", "Bearer \x80", "Bearer \"x\""}) {
    EXPECT_EQ(BearerSecret(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace hippodrome::key_secret_test
