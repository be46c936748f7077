#include "tools/convert/flax/msgpack_writer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/testing/temporary_directory.h"
#include "tools/convert/flax/msgpack_reader.h"
#include "tools/convert/random_access_file.h"

namespace hippodrome::msgpack_writer_test {
namespace {

using Kind = MsgpackItem::Kind;

// What a reader sees of `head`, with room for what it announces.
MsgpackItem Read(const std::string& head, uint64_t contents) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("item", head);
  std::filesystem::resize_file(path, head.size() + contents);
  const auto file = RandomAccessFile::Open(path).value();
  MsgpackReader reader(*file);
  const auto item = reader.Next();
  EXPECT_TRUE(item.ok()) << item.status();
  EXPECT_EQ(reader.position(), head.size());
  return item.value_or(MsgpackItem());
}

TEST(MsgpackWriterTest, IntegersTakeAsManyBytesAsTheyNeed) {
  const std::pair<int64_t, size_t> integers[] = {{0, 1},        {127, 1},       {128, 2},
                                                 {255, 2},      {256, 3},       {65535, 3},
                                                 {65536, 5},    {1L << 31, 5},  {(1L << 32) - 1, 5},
                                                 {1L << 32, 9}, {INT64_MAX, 9}, {-1, 9}};
  for (const auto& [value, bytes] : integers) {
    const std::string item = msgpack::Integer(value);
    EXPECT_EQ(item.size(), bytes) << value;
    EXPECT_EQ(Read(item, 0).integer, value);
  }
}

TEST(MsgpackWriterTest, HeadsOfEverySize) {
  for (const uint64_t size : {0, 1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 255, 256, 65535, 65536}) {
    SCOPED_TRACE(size);
    const MsgpackItem binary = Read(msgpack::BinaryHead(size), size);
    EXPECT_EQ(binary.kind, Kind::kBinary);
    EXPECT_EQ(binary.size, size);
    const MsgpackItem extension = Read(msgpack::ExtensionHead(-3, size), size);
    EXPECT_EQ(extension.kind, Kind::kExtension);
    EXPECT_EQ(extension.size, size);
    EXPECT_EQ(extension.extension, -3);
    const MsgpackItem array = Read(msgpack::ArrayHead(size), size);
    EXPECT_EQ(array.kind, Kind::kArray);
    EXPECT_EQ(array.size, size);
    const MsgpackItem map = Read(msgpack::MapHead(size), 2 * size);
    EXPECT_EQ(map.kind, Kind::kMap);
    EXPECT_EQ(map.size, size);
    const std::string text = msgpack::Text(std::string(size, 'x'));
    EXPECT_EQ(Read(text.substr(0, text.size() - size), size).kind, Kind::kString);
  }
}

}  // namespace
}  // namespace hippodrome::msgpack_writer_test
