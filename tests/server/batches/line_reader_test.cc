#include "server/batches/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "tests/testing/temporary_directory.h"

namespace hippodrome::line_reader_test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

std::vector<std::string> Rest(LineReader& reader) {
  std::vector<std::string> lines;
  InputLine line;
  for (;;) {
    const absl::StatusOr<bool> more = reader.Next(line);
    if (!more.ok()) lines.push_back(more.status().ToString());
    if (!more.ok() || !*more) return lines;
    lines.push_back(line.too_long ? "<too long>" : line.text);
  }
}

std::vector<std::string> Read(const std::string& path, int64_t most = 100) {
  return Rest(**LineReader::Open(path, most));
}

std::string Packed(const std::string& text) {
  const TemporaryDirectory folder;
  const std::string path = folder.File("packed");
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return FileContent(path);
}

TEST(LineReaderTest, GivesEveryLineWhetherOrNotTheLastOneEnds) {
  const TemporaryDirectory folder;
  EXPECT_THAT(Read(folder.Write("a", "one\n\nthree\n")), ElementsAre("one", "", "three"));
  EXPECT_THAT(Read(folder.Write("b", "one\ntwo")), ElementsAre("one", "two"));
  EXPECT_THAT(Read(folder.Write("c", "")), ElementsAre());
  EXPECT_THAT(Read(folder.Write("d", "\n")), ElementsAre(""));
}

TEST(LineReaderTest, ReadsWhatGzipPacked) {
  const TemporaryDirectory folder;
  const std::string packed = Packed("one\ntwo\n");
  EXPECT_THAT(Read(folder.Write("a.gz", packed)), ElementsAre("one", "two"));
  EXPECT_THAT(Read(folder.Write("b.gz", packed + Packed("three"))),
              ElementsAre("one", "two", "three"));
  EXPECT_THAT(Read(folder.Write("c.gz", packed.substr(0, packed.size() - 9))).back(),
              HasSubstr("c.gz: the gzip data ends early"));
  std::string broken = packed;
  broken[broken.size() - 5] ^= 1;
  EXPECT_THAT(Read(folder.Write("d.gz", broken)).back(),
              HasSubstr("d.gz: the gzip data is broken"));
}

TEST(LineReaderTest, LinesThatAreTooLongLeaveTheOthers) {
  const TemporaryDirectory folder;
  const std::string text =
      std::string(1000000, 'x') + "\nshort\n" + std::string(11, 'y') + "\n" + std::string(10, 'z');
  EXPECT_THAT(Read(folder.Write("a", text), 10),
              ElementsAre("<too long>", "short", "<too long>", "zzzzzzzzzz"));
}

TEST(LineReaderTest, SharesAreAllLinesEachOnce) {
  const TemporaryDirectory folder;
  std::string text;
  for (int i = 0; i < 57; ++i) text += std::string(i * 7 % 13, 'a') + std::to_string(i) + "\n";
  for (const std::string& content :
       {text, text + "no end", std::string("one line"), std::string()}) {
    const std::string paths[] = {folder.Write("plain", content),
                                 folder.Write("packed", Packed(content))};
    for (const std::string& path : paths) {
      const std::vector<std::string> whole = Read(path);
      for (const int64_t count : {1, 2, 3, 7, 100}) {
        std::vector<std::string> joined;
        for (int64_t i = 0; i < count; ++i) {
          const auto reader = *LineReader::Open(path, 100);
          ASSERT_TRUE(reader->TakeShare(i, count).ok());
          for (const std::string& line : Rest(*reader)) joined.push_back(line);
        }
        EXPECT_THAT(joined, ElementsAreArray(whole)) << path << " in " << count;
      }
    }
  }
}

TEST(LineReaderTest, TellsHowFarItIs) {
  const TemporaryDirectory folder;
  const auto reader = *LineReader::Open(folder.Write("a", "one\ntwo\n"), 100);
  Rest(*reader);
  EXPECT_EQ(reader->progress().done, 8);
  EXPECT_EQ(reader->progress().total, 8);
  EXPECT_EQ(reader->position(), 8);
}

TEST(LineReaderTest, MissingFilesAreNamed) {
  EXPECT_THAT(LineReader::Open("/no/such/file", 10).status().ToString(),
              HasSubstr("/no/such/file"));
}

}  // namespace
}  // namespace hippodrome::line_reader_test
