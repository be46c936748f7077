#include "tools/evaluate/labelled_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "tools/evaluate/encoders/glue_tasks.h"

namespace hippodrome::labelled_texts_test {
namespace {

using testing::HasSubstr;

std::string Error(std::string_view table, const TableLayout& layout) {
  return Message(ReadLabelledTexts(table, layout).status());
}

TEST(LabelledTextsTest, ByNumber) {
  const auto texts =
      ReadLabelledTexts("great\tGood \"food\".\nother\tBad.\n", {.first = "1", .label = "0"});
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_FALSE(texts->pairs);
  ASSERT_EQ(texts->examples.size(), 2U);
  EXPECT_EQ(texts->examples[0].first, "Good \"food\".");
  EXPECT_EQ(texts->examples[1].label, "other");
  EXPECT_EQ(texts->examples[1].line, 2);
}

TEST(LabelledTextsTest, ByName) {
  const auto texts =
      ReadLabelledTexts("index\tq\ts\tlabel\n0\tWhy?\tSo.\tyes\n",
                        {.header = true, .first = "q", .second = "s", .label = "label"});
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_TRUE(texts->pairs);
  ASSERT_EQ(texts->examples.size(), 1U);
  EXPECT_EQ(texts->examples[0].second, "So.");
  EXPECT_EQ(texts->examples[0].label, "yes");
}

TEST(LabelledTextsTest, BrokenRowsAreErrorsUnlessTheyMayBeSkipped) {
  const std::string table = "a\tb\nx\ty\nz\nx\ty\tz\n";
  TableLayout layout = {.header = true, .first = "a", .label = "b"};
  EXPECT_THAT(Error(table, layout), HasSubstr("line 3 has 1 field(s), expected 2"));
  layout.skip_broken = true;
  const auto texts = ReadLabelledTexts(table, layout);
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(texts->examples.size(), 1U);
  EXPECT_EQ(texts->skipped, 2);
}

TEST(LabelledTextsTest, RowsWithoutALabelAreCounted) {
  const auto texts =
      ReadLabelledTexts("x\t-\ny\t1\n", {.first = "0", .label = "1", .unlabelled = "-"});
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(texts->examples.size(), 1U);
  EXPECT_EQ(texts->skipped, 1);
}

TEST(LabelledTextsTest, ColumnsMustExist) {
  EXPECT_THAT(Error("a\tb\n", {.first = "2", .label = "0"}),
              HasSubstr("no column 2, line 1 has 2"));
  EXPECT_THAT(Error("a\tb\n", {.first = "-1", .label = "0"}), HasSubstr("'-1' is no number"));
  EXPECT_THAT(Error("a\tb\n", {.first = "a", .label = "0"}), HasSubstr("'a' is no number"));
  EXPECT_THAT(Error("a\tb\n", {.header = true, .first = "c", .label = "0"}),
              HasSubstr("no column 'c'"));
}

TEST(LabelledTextsTest, ThereMustBeExamples) {
  EXPECT_THAT(Error("\n\n", {.first = "0", .label = "1"}), HasSubstr("nothing in the table"));
  EXPECT_THAT(Error("a\tb\n", {.header = true, .first = "a", .label = "b"}),
              HasSubstr("no labelled rows"));
}

// The first lines of files in GLUE's layouts, with texts of our own.
TEST(GlueTasksTest, ReadsTheLayouts) {
  const auto read = [](const char* task, std::string_view table) {
    return *ReadLabelledTexts(table, FindGlueTask(task)->layout);
  };
  const LabelledTexts cola = read("cola", "gj04\t1\t\tShe left.\ngj04\t0\t*\tLeft she.\n");
  EXPECT_EQ(cola.examples[1].first, "Left she.");
  EXPECT_EQ(cola.examples[1].label, "0");
  EXPECT_EQ(read("sst2", "sentence\tlabel\nfine \t1\n").examples[0].label, "1");
  const LabelledTexts mrpc = read(
      "mrpc", "\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\tX \"\tY .\r\n");
  EXPECT_EQ(mrpc.examples[0].first, "X \"");
  EXPECT_EQ(mrpc.examples[0].second, "Y .");
  const LabelledTexts qqp = read(
      "qqp", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t1\t2\tA?\tB?\t0\n2\t3\tC?\n");
  EXPECT_EQ(qqp.examples.size(), 1U);
  EXPECT_EQ(qqp.skipped, 1);
  EXPECT_EQ(read("rte", "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n")
                .examples[0]
                .label,
            "not_entailment");
  EXPECT_EQ(FindGlueTask("snli"), nullptr);
}

}  // namespace
}  // namespace hippodrome::labelled_texts_test
