#include "server/address.h"

#include <gtest/gtest.h>

namespace hippodrome::address_test {
namespace {

TEST(AddressTest, RoundTrips) {
  for (const char* text : {"127.0.0.1:8080", "[::1]:0", "localhost:65535", "0.0.0.0:1"}) {
    const auto address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(ToText(*address), text);
  }
  EXPECT_EQ(ParseAddress("[::1]:80")->host, "::1");
}

TEST(AddressTest, RefusesWhatIsNone) {
  for (const char* text : {"", ":", ":80", "host", "host:", "host:x", "host:65536", "host:-1",
                           "host:80 ", "::1:80", "[]:80", "host:8o"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseAddress(text).status())) << text;
  }
}

TEST(AddressTest, LoopbackIsWhatOnlyThisMachineReaches) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "192.0.2.7", "2001:db8::1", "::ffff:192.0.2.7",
                           "example.org", "localhost.example.org", "127.0.0.1.example.org"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(ClientTest, IsAnAddressOrTheNetworkThatItsOwnerHas) {
  EXPECT_EQ(ClientOf("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(ClientOf("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(ClientOf("::1"), "::1");
  EXPECT_EQ(ClientOf("2001:db8:0:1::5"), "2001:db8:0:1::/64");
  EXPECT_EQ(ClientOf("2001:db8:0:1:ffff::6"), "2001:db8:0:1::/64");
  EXPECT_EQ(ClientOf("fe80::1%eth0"), "fe80::/64");
  EXPECT_EQ(ClientOf("/run/socket"), "/run/socket");
  EXPECT_EQ(ClientOf(""), "");
}

}  // namespace
}  // namespace hippodrome::address_test
