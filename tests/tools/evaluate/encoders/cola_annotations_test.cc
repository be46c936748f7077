#include "tools/evaluate/encoders/cola_annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::cola_annotations_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const std::string kHeader = "Source\tDomain\tAcceptability\tSentence\tSimple\tN, Adj\tNever\n";
const std::string kTable = kHeader +
                           "gj04\tIn\t1\tShe left.\t1\t0\t0\n"
                           "gj04\tOut\t0\tLeft she.\t1\t1\t0\n"
                           "cj99\tIn\t1\tHe stayed.\t0\t1\t0\n";

TEST(ColaAnnotationsTest, ListsTheExamplesOfEachFeature) {
  const auto read = ReadColaAnnotations(kTable);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->texts.examples.size(), 3U);
  EXPECT_EQ(read->texts.examples[1].first, "Left she.");
  EXPECT_EQ(read->texts.examples[1].label, "0");
  EXPECT_THAT(read->features,
              ElementsAre(Pair("N, Adj", ElementsAre(1, 2)), Pair("Never", IsEmpty()),
                          Pair("Simple", ElementsAre(0, 1))));
}

TEST(ColaAnnotationsTest, NamesWhatIsWrong) {
  const auto error = [](const std::string& table) {
    return Message(ReadColaAnnotations(table).status());
  };
  EXPECT_THAT(error(""), HasSubstr("nothing in the table"));
  EXPECT_THAT(error("Source\tSentence\nx\ty\n"), HasSubstr("no column 'Acceptability'"));
  EXPECT_THAT(error(kHeader + "x\ty\t1\tz\t1\n"), HasSubstr("line 2 has 5 field(s)"));
  EXPECT_THAT(error(kHeader + "x\ty\t1\tz\t0\t2\t0\n"), HasSubstr("line 2: N, Adj is '2'"));
}

}  // namespace
}  // namespace hippodrome::cola_annotations_test
