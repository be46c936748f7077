#include "engine/base/xxh3.h"

#include <gtest/gtest.h>

#include <string>

namespace hippodrome::xxh3_test {
namespace {

std::string Of(std::string_view text) {
  Xxh3 xxh3;
  xxh3.Add(text);
  return xxh3.Hex();
}

TEST(Xxh3Test, IsThePublishedFunction) {
  // As `xxhsum -H2` prints it.
  EXPECT_EQ(Of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(Of("The quick brown fox jumps over the lazy dog"), "ddd650205ca3e7fa24a1cc2e3a8a7651");
}

TEST(Xxh3Test, DoesNotDependOnCuts) {
  const std::string text(1000, 'x');
  Xxh3 xxh3;
  for (size_t i = 0; i < text.size(); i += 7) xxh3.Add(std::string_view(text).substr(i, 7));
  EXPECT_EQ(xxh3.Hex(), Of(text));
  EXPECT_NE(xxh3.Hex(), Of(text + "x"));
}

}  // namespace
}  // namespace hippodrome::xxh3_test
