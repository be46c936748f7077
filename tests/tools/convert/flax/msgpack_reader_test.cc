#include "tools/convert/flax/msgpack_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/convert/msgpack_builder.h"
#include "tools/convert/byte_order.h"

namespace hippodrome::msgpack_reader_test {
namespace {

using Kind = MsgpackItem::Kind;
using testing::HasSubstr;

// A file and its reader.
struct Message {
  explicit Message(const std::string& bytes)
      : file(RandomAccessFile::Open(directory.Write("message", bytes)).value()), reader(*file) {}

  TemporaryDirectory directory;
  std::unique_ptr<RandomAccessFile> file;
  MsgpackReader reader;
};

TEST(MsgpackReaderTest, IntegersOfEveryWidth) {
  const std::pair<std::string, int64_t> integers[] = {
      {"\x7f", 127},
      {"\xe0", -32},
      {"\xcc\xff", 255},
      {"\xcd" + BigEndian(65535, 2), 65535},
      {"\xcf" + BigEndian(uint64_t{1} << 62, 8), int64_t{1} << 62},
      {"\xd0\x80", -128},
      {"\xd1" + BigEndian(0xfffe, 2), -2},
      {"\xd3" + BigEndian(uint64_t{1} << 63, 8), INT64_MIN},
  };
  for (const auto& [bytes, value] : integers) {
    Message message(bytes);
    const MsgpackItem item = message.reader.Next().value();
    EXPECT_EQ(item.kind, Kind::kInteger);
    EXPECT_EQ(item.integer, value);
    EXPECT_EQ(message.reader.position(), bytes.size());
  }
  Message large("\xcf" + BigEndian(uint64_t{1} << 63, 8));
  EXPECT_THAT(hippodrome::Message(large.reader.Next().status()), HasSubstr("at most 63 bits"));
}

TEST(MsgpackReaderTest, StopsAtTheContentsOfAnItem) {
  Message message(msgpack::Map({msgpack::Text("key"), msgpack::Extension(-3, "xyz")}));
  const MsgpackItem map = message.reader.Next().value();
  EXPECT_EQ(map.kind, Kind::kMap);
  EXPECT_EQ(map.size, 1u);
  const MsgpackItem key = message.reader.Next().value();
  EXPECT_EQ(key.kind, Kind::kString);
  EXPECT_EQ(message.reader.Text(key.size).value(), "key");
  const MsgpackItem extension = message.reader.Next().value();
  EXPECT_EQ(extension.kind, Kind::kExtension);
  EXPECT_EQ(extension.extension, -3);
  EXPECT_EQ(extension.size, 3u);
  message.reader.Skip(extension.size);
  EXPECT_EQ(message.reader.position(), message.file->size());
}

TEST(MsgpackReaderTest, NoItemAnnouncesMoreThanTheFileHas) {
  for (const std::string head : {"\xa5"
                                 "abcd",
                                 "\x92\x01", "\x81\x01", "\xc4\x02x", "\xc7\x05\x01"}) {
    Message message(head);
    EXPECT_THAT(hippodrome::Message(message.reader.Next().status()), HasSubstr("are left"));
  }
  Message unknown("\xc1");
  EXPECT_THAT(hippodrome::Message(unknown.reader.Next().status()), HasSubstr("byte 0 is 0xc1"));
  EXPECT_FALSE(Message("\xcd\x01").reader.Next().ok());
  EXPECT_FALSE(Message("").reader.Next().ok());
}

}  // namespace
}  // namespace hippodrome::msgpack_reader_test
