#include "tools/evaluate/encoders/scrolls_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/status.h"

namespace hippodrome::scrolls_file_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A line as it is published.
std::string Line(const std::string& input, const std::string& output) {
  return nlohmann::json({{"id", "20_1"}, {"pid", "20_1_0"}, {"input", input}, {"output", output}})
             .dump() +
         "\n";
}

TEST(ContractNliTest, TakesTheWholeContract) {
  const auto read =
      ReadContractNli("\n" + Line("It may copy.\n\nNDA\n\n1. Terms\nx", "Entailment"));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ((*read)[0].line, 2);
  EXPECT_EQ((*read)[0].hypothesis, "It may copy.");
  EXPECT_EQ((*read)[0].contract, "NDA\n\n1. Terms\nx");
  EXPECT_EQ((*read)[0].label, "Entailment");
}

TEST(ContractNliTest, NamesWhatIsWrong) {
  const auto error = [](const std::string& text) {
    return Message(ReadContractNli(text).status());
  };
  EXPECT_THAT(error(""), HasSubstr("there are no examples"));
  EXPECT_THAT(error("x\n"), HasSubstr("line 1: "));
  EXPECT_THAT(error("[]\n"), HasSubstr("line 1: "));
  EXPECT_THAT(error(Line("a\n\nb", "x") + "{\"input\": 1}\n"),
              HasSubstr("line 2: input: expected a string"));
  EXPECT_THAT(error("{\"input\": \"a\\n\\nb\", \"output\": null}\n"),
              HasSubstr("line 1: output: expected a string"));
  EXPECT_THAT(error(Line("a\nb", "x")), HasSubstr("input: expected a blank line"));
}

const std::string kInput =
    "Why (B)?\n\n (A) He was  (B) late.\n (B) To see\n (C) No\n (D) Yes\n\nA story.\n\n(D) End.";

TEST(QualityTest, TakesQuestionOptionsAndArticle) {
  const auto read = ReadQuality(Line(kInput, "To  see "));
  ASSERT_TRUE(read.ok()) << read.status();
  const QualityQuestion& question = (*read)[0];
  EXPECT_EQ(question.question, "Why (B)?");
  EXPECT_THAT(question.options, ElementsAre("He was (B) late.", "To see", "No", "Yes"));
  EXPECT_EQ(question.article, "A story.\n\n(D) End.");
  EXPECT_EQ(question.gold, 1U);
  EXPECT_FALSE(question.hard);
}

TEST(QualityTest, KnowsHardQuestions) {
  std::string line = Line(kInput, "No");
  line.insert(1, "\"is_hard\": true, ");
  const auto read = ReadQuality(line);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE((*read)[0].hard);
}

TEST(QualityTest, AnArticleMayBeMissing) {
  const auto read = ReadQuality(Line("q\n\n(A) a\n(B) b\n(C) c\n(D) d", "d"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)[0].article, "");
  EXPECT_EQ((*read)[0].gold, 3U);
}

TEST(QualityTest, NamesWhatIsWrong) {
  const auto error = [](const std::string& text) { return Message(ReadQuality(text).status()); };
  EXPECT_THAT(error(Line(kInput, "Maybe")), HasSubstr("line 1: output: 'Maybe' is none of the"));
  EXPECT_THAT(error(Line("q\n\n(A) a\n(B) b\n(D) d\n\nx", "a")),
              HasSubstr("line 1: input: expected an option (C)"));
  EXPECT_THAT(error(Line("q (A) a", "a")), HasSubstr("expected a blank line"));
  std::string line = Line(kInput, "No");
  line.insert(1, "\"is_hard\": 1, ");
  EXPECT_THAT(error(line), HasSubstr("is_hard"));
}

}  // namespace
}  // namespace hippodrome::scrolls_file_test
