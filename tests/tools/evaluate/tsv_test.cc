#include "tools/evaluate/tsv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::tsv_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TsvTest, QuotationMarksMeanNothing) {
  const auto rows = ParseTsv("\"a\tb\"\n' \"x\"\"\t\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0].fields, ElementsAre("\"a", "b\""));
  EXPECT_THAT(rows[1].fields, ElementsAre("' \"x\"\"", ""));
}

TEST(TsvTest, LinesEndEitherWayAndTheLastNeedNoEnd) {
  const auto rows = ParseTsv("a\tb\r\nc\r\td\n\te");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_THAT(rows[0].fields, ElementsAre("a", "b"));
  EXPECT_THAT(rows[1].fields, ElementsAre("c\r", "d"));
  EXPECT_THAT(rows[2].fields, ElementsAre("", "e"));
}

TEST(TsvTest, EmptyLinesCountAsLinesOnly) {
  const auto rows = ParseTsv("\n\r\na\n\nb\n\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].line, 3);
  EXPECT_EQ(rows[1].line, 5);
  EXPECT_TRUE(ParseTsv("").empty());
}

TEST(TsvTest, AByteOrderMarkIsNoText) {
  EXPECT_THAT(ParseTsv("\xEF\xBB\xBFQuality\tx\n")[0].fields, ElementsAre("Quality", "x"));
}

TEST(TsvTest, FindsColumnsByName) {
  const TsvRow header = ParseTsv("index\t#1 String\tlabel\n")[0];
  EXPECT_EQ(*FindColumn(header, "#1 String"), 1U);
  EXPECT_THAT(Message(FindColumn(header, "Label").status()),
              HasSubstr("no column 'Label', the header has index, #1 String, label"));
}

TEST(TsvTest, NamesTheLineWithOtherFields) {
  const auto rows = ParseTsv("a\tb\nc\n");
  EXPECT_TRUE(CheckFields(rows[0], 2).ok());
  EXPECT_THAT(Message(CheckFields(rows[1], 2)), HasSubstr("line 2 has 1 field(s), expected 2"));
}

}  // namespace
}  // namespace hippodrome::tsv_test
