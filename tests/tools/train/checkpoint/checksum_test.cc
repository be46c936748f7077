#include "tools/train/checkpoint/checksum.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hippodrome::checksum_test {
namespace {

TEST(ChecksumTest, EveryByteCounts) {
  const std::string text = "nineteen characters";
  std::set<std::string> sums = {Checksum(text)};
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      sums.insert(Checksum(other));
    }
  }
  EXPECT_EQ(sums.size(), 1 + 8 * text.size());
}

TEST(ChecksumTest, SoDoLengthAndOrder) {
  EXPECT_NE(Checksum(std::string(8, '\0')), Checksum(std::string(9, '\0')));
  EXPECT_NE(Checksum(std::string()), Checksum(std::string(1, '\0')));
  EXPECT_NE(Checksum(std::string("12345678abcdefgh")), Checksum(std::string("abcdefgh12345678")));
}

// Checkpoints keep it: it must not change.
TEST(ChecksumTest, StaysTheSame) {
  EXPECT_EQ(Checksum(std::string()), "68853b6a3912cca3");
  EXPECT_EQ(Checksum(std::string("hippodrome")), "0d6dab77807d8825");
}

}  // namespace
}  // namespace hippodrome::checksum_test
