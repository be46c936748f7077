#include "tools/evaluate/label_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::label_names_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(LabelNamesTest, ClassesAreTheLabelsPlaces) {
  EXPECT_THAT(*ClassesOf({{.label = "spam"}, {.label = "ham"}}, {"ham", "spam"}),
              ElementsAre(1, 0));
  EXPECT_THAT(Message(ClassesOf({{.line = 7, .label = "Ham"}}, {"ham", "spam"}).status()),
              HasSubstr("line 7: the label is 'Ham', expected one of ham, spam"));
}

TEST(LabelNamesTest, ScoresAreNumbers) {
  EXPECT_THAT(*ScoresOf({{.label = "5.000"}, {.label = "0"}}), ElementsAre(5, 0));
  for (const char* label : {"", "1x", "nan", "1e999", " 1"}) {
    EXPECT_THAT(Message(ScoresOf({{.line = 3, .label = label}}).status()),
                HasSubstr("line 3: the label is"))
        << label;
  }
}

TEST(LabelNamesTest, OutputsStandForClassesByNameOrElseInOrder) {
  const std::vector<std::string> names = {"entailment", "neutral", "contradiction"};
  EXPECT_THAT(ClassOfOutputs({"CONTRADICTION", "NEUTRAL", "ENTAILMENT"}, names),
              ElementsAre(2, 1, 0));
  EXPECT_THAT(ClassOfOutputs({"LABEL_0", "LABEL_1", "LABEL_2"}, names), ElementsAre(0, 1, 2));
  EXPECT_THAT(ClassOfOutputs({"neutral", "neutral", "entailment"}, names), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace hippodrome::label_names_test
