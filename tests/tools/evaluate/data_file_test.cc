#include "tools/evaluate/data_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::data_file_test {
namespace {

using testing::HasSubstr;

// gzip -n of "hello\n".
const std::string kHello(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00\x20\x30\x3a\x36\x06"
    "\x00\x00\x00",
    26);

TEST(DataFileTest, UnpacksEveryMember) {
  EXPECT_EQ(*Gunzip(kHello, 100), "hello\n");
  EXPECT_EQ(*Gunzip(kHello + kHello, 100), "hello\nhello\n");
}

TEST(DataFileTest, EveryTruncationIsRefused) {
  for (size_t length = 0; length < kHello.size(); ++length) {
    const auto text = Gunzip(kHello.substr(0, length), 100);
    ASSERT_FALSE(text.ok()) << length;
    EXPECT_THAT(Message(text.status()), HasSubstr("ends early"));
  }
}

TEST(DataFileTest, DamageIsRefused) {
  std::string damaged = kHello;
  damaged[20] ^= 1;  // in the checksum
  EXPECT_THAT(Message(Gunzip(damaged, 100).status()), HasSubstr("broken"));
  EXPECT_THAT(Message(Gunzip(kHello + "garbage", 100).status()), HasSubstr("broken"));
}

TEST(DataFileTest, SmallFilesCannotFillTheMemory) {
  EXPECT_TRUE(Gunzip(kHello, 6).ok());
  EXPECT_THAT(Message(Gunzip(kHello, 5).status()), HasSubstr("more than 5 bytes"));
}

TEST(DataFileTest, TellsGzipByItsContents) {
  const TemporaryDirectory directory;
  EXPECT_EQ(*ReadDataFile(directory.Write("packed", kHello)), "hello\n");
  EXPECT_EQ(*ReadDataFile(directory.Write("plain", "plain")), "plain");
  EXPECT_THAT(Message(ReadDataFile(directory.Write("short", kHello.substr(0, 9))).status()),
              HasSubstr("/short: the gzip data ends early"));
  EXPECT_FALSE(ReadDataFile(directory.File("missing")).ok());
}

}  // namespace
}  // namespace hippodrome::data_file_test
