#include "tools/evaluate/encoders/syntax_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::syntax_pairs_test {
namespace {

using testing::HasSubstr;

TEST(SyntaxPairsTest, MasksTheWordThatDiffers) {
  const auto read = ReadSyntaxPairs("prep_inanim\tsing\tthe book  is red\tthe book are red\n");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->pairs.size(), 1U);
  const SyntaxPair& pair = read->pairs[0];
  EXPECT_EQ(pair.family, "prep");
  EXPECT_EQ(pair.condition, "prep_inanim/sing");
  EXPECT_EQ(pair.masked, "the book [MASK] red .");
  EXPECT_EQ(pair.good, "is");
  EXPECT_EQ(pair.bad, "are");
}

TEST(SyntaxPairsTest, CountsWhatIsNoMinimalPair) {
  const auto read = ReadSyntaxPairs(
      "a\tb\tx y\tx z\n"
      "a\tb\tx y\tx y\n"
      "a\tb\tx y\tz z\n"
      "a\tb\tx y\tx y z\n"
      "a\tb\tx y\tx z\tx w\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->pairs.size(), 1U);
  EXPECT_EQ(read->skipped, 4);
}

TEST(SyntaxPairsTest, FamiliesJoinAnimateAndInanimate) {
  const auto read = ReadSyntaxPairs("prep_anim\tc\tx\ty\nvp_coord\tc\tx\ty\n");
  EXPECT_EQ(read->pairs[0].family, "prep");
  EXPECT_EQ(read->pairs[1].family, "vp_coord");
}

TEST(SyntaxPairsTest, NamesALineThatIsTooShort) {
  EXPECT_THAT(Message(ReadSyntaxPairs("a\tb\tx\ty\na\tb\tx\n").status()),
              HasSubstr("line 2 has 3 field(s), expected 4"));
  EXPECT_THAT(Message(ReadSyntaxPairs("").status()), HasSubstr("no pairs"));
}

TEST(SyntaxPairsTest, TakesPlainPairs) {
  const auto read = ReadSyntaxPairs(
      "The book is red.\tThe book are red.\n"
      "It is.\tIt are.\n"
      "x y\tx z\tw\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->layout, SyntaxLayout::kPairs);
  ASSERT_EQ(read->pairs.size(), 2U);
  EXPECT_EQ(read->skipped, 1);
  EXPECT_EQ(read->pairs[0].masked, "The book [MASK] red.");
  EXPECT_EQ(read->pairs[1].masked, "It [MASK].");
  EXPECT_EQ(read->pairs[1].good, "is");
  EXPECT_EQ(read->pairs[1].bad, "are");
}

const std::string kHeader =
    "orig_sentence\tverb_pos\tverb_index\tn_intervening\tn_diff_intervening\n";

TEST(SyntaxPairsTest, ChangesTheNumberOfVerbsBehindAttractors) {
  const auto read = ReadSyntaxPairs(kHeader +
                                    "the keys to the cabinet Are here .\tVBP\t6\t1\t1\n"
                                    "the key to the rooms opens it\tVBZ\t6\t1\t1\n"
                                    "the book is red\tVBZ\t3\t0\t0\n"
                                    "a of b of c is\tVBZ\t6\t2\t1\n"
                                    "the keys to the cabinet were\tVBD\t6\t1\t1\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->layout, SyntaxLayout::kAttractors);
  ASSERT_EQ(read->pairs.size(), 2U);
  EXPECT_EQ(read->skipped, 3);
  EXPECT_EQ(read->pairs[0].family, "1");
  EXPECT_EQ(read->pairs[0].masked, "the keys to the cabinet [MASK] here .");
  EXPECT_EQ(read->pairs[0].good, "are");
  EXPECT_EQ(read->pairs[0].bad, "is");
  EXPECT_EQ(read->pairs[1].bad, "open");
}

TEST(SyntaxPairsTest, NamesWhatIsWrongWithAttractors) {
  const auto error = [](const std::string& table) {
    return Message(ReadSyntaxPairs(table).status());
  };
  EXPECT_THAT(error("orig_sentence\tverb_pos\n"), HasSubstr("no column 'n_intervening'"));
  EXPECT_THAT(error(kHeader + "a b\tVBZ\t1\n"), HasSubstr("line 2 has 3 field(s), expected 5"));
  EXPECT_THAT(error(kHeader + "a b\tVBZ\t3\t1\t1\n"),
              HasSubstr("line 2: verb_index is '3', expected a word of the sentence, 1 to 2"));
  EXPECT_THAT(error(kHeader + "a b\tVBZ\tx\t1\t1\n"), HasSubstr("verb_index is 'x'"));
  EXPECT_THAT(error(kHeader), HasSubstr("no pairs"));
}

TEST(VerbsTest, HaveTwoNumbers) {
  const std::pair<const char*, const char*> verbs[] = {
      {"is", "are"},        {"has", "have"},     {"does", "do"},   {"goes", "go"},
      {"carries", "carry"}, {"plays", "play"},   {"dies", "die"},  {"reaches", "reach"},
      {"uses", "use"},      {"passes", "pass"},  {"fixes", "fix"}, {"realizes", "realize"},
      {"focuses", "focus"}, {"writes", "write"},
  };
  for (const auto& [singular, plural] : verbs) {
    EXPECT_EQ(PluralVerb(singular), plural);
    EXPECT_EQ(SingularVerb(plural), singular);
  }
}

}  // namespace
}  // namespace hippodrome::syntax_pairs_test
