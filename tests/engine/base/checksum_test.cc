#include "engine/base/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace hippodrome::checksum_test {
namespace {

std::string Of(std::string_view text) {
  Checksum checksum;
  checksum.Add(text);
  return checksum.Hex();
}

TEST(ChecksumTest, IsThePublishedFunction) {
  // As `xxhsum -H2` prints it.
  EXPECT_EQ(Of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(Of("The quick brown fox jumps over the lazy dog"), "ddd650205ca3e7fa24a1cc2e3a8a7651");
}

TEST(ChecksumTest, DoesNotDependOnCuts) {
  const std::string text(1000, 'x');
  Checksum checksum;
  for (size_t i = 0; i < text.size(); i += 7) checksum.Add(std::string_view(text).substr(i, 7));
  EXPECT_EQ(checksum.Hex(), Of(text));
  EXPECT_NE(checksum.Hex(), Of(text + "x"));
}

}  // namespace
}  // namespace hippodrome::checksum_test
