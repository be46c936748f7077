#include "tools/evaluate/lm/continuation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hippodrome::continuation_test {
namespace {

using testing::ElementsAre;
using Ids = std::vector<int32_t>;

constexpr char kModel[] = "deploy/models/h3-demo";

class JoinTest : public testing::Test {
 protected:
  Continuation Cut(const std::string& context, const std::string& continuation) {
    const auto joined = joiner_.Join(context, continuation);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return joined.value_or(Continuation());
  }
  int64_t Count(const std::string& text) const { return std::ssize(tokenizer_->Encode(text)); }

  const std::unique_ptr<BpeTokenizer> tokenizer_ = BpeTokenizer::Read(kModel).value();
  const int32_t end_of_text_ = 0;  // any id will do
  Joiner joiner_{tokenizer_.get(), end_of_text_};
};

TEST_F(JoinTest, TextsAreOneText) {
  const Continuation joined = Cut("The king", " of Babylon");
  EXPECT_EQ(joined.ids, tokenizer_->Encode("The king of Babylon"));
  EXPECT_EQ(joined.begin, Count("The king"));
}

TEST_F(JoinTest, TheContextIsEncodedOnceAndTheTokensAreThoseOfAll) {
  for (const std::string context :
       {"The king", "The king'", "He said 'r", "A   ", "a b  c ", "1,000", "'l", " '",
        "\u00e9t\u00e9 \xc3", "line\n\n", "The  \t "}) {
    for (const std::string continuation :
         {"e", "l", " of", "s", "  x", "'s", "\xa9", "\n", "0", "\u3000y"}) {
      const auto joined = joiner_.Join(context, continuation);
      if (!joined.ok()) continue;
      Ids expected = tokenizer_->Encode(context + continuation);
      if (joined->ids.front() == end_of_text_) expected.insert(expected.begin(), end_of_text_);
      EXPECT_EQ(joined->ids, expected) << "'" << context << "' '" << continuation << "'";
    }
  }
}

TEST_F(JoinTest, WhiteSpaceBetweenThemGoesWithTheContinuation) {
  for (const std::string space : {" ", "\n", " \t\r\n", "\u3000", "\u00a0 "}) {
    const Continuation joined = Cut("The king" + space, "of Babylon");
    EXPECT_EQ(joined.ids, tokenizer_->Encode("The king" + space + "of Babylon"));
    EXPECT_EQ(joined.begin, Count("The king"));
  }
}

TEST_F(JoinTest, AnEmptyContextIsTheEndOfTextToken) {
  for (const std::string context : {"", " "}) {
    const Continuation joined = Cut(context, "The king");
    Ids expected = tokenizer_->Encode(context + "The king");
    expected.insert(expected.begin(), end_of_text_);
    EXPECT_EQ(joined.ids, expected);
    EXPECT_EQ(joined.begin, 1);
  }
  EXPECT_EQ(Joiner(nullptr, 9).Join(Ids(), Ids({7}))->ids, Ids({9, 7}));
  EXPECT_TRUE(absl::IsFailedPrecondition(Joiner(nullptr, -1).Join(Ids(), Ids({7})).status()));
}

TEST_F(JoinTest, TokenIdsNeedNoTokenizer) {
  const auto joined = Joiner(nullptr, -1).Join(Ids({1, 2}), Ids({3}));
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->ids, Ids({1, 2, 3}));
  EXPECT_EQ(joined->begin, 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Joiner(nullptr, 1).Join(std::string("a"), std::string("b")).status()));
}

TEST_F(JoinTest, AContinuationHasATokenOfItsOwn) {
  ASSERT_EQ(Count("the"), 1);
  ASSERT_EQ(Count("th"), 1);  // "the" has no token that "th" has not
  const std::string a = "a";
  EXPECT_TRUE(absl::IsInvalidArgument(joiner_.Join(std::string("th"), std::string("e")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(joiner_.Join(a, std::string()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(joiner_.Join(Ids(), Ids()).status()));
}

TEST(CutContextTest, DropsTheBeginning) {
  const Continuation whole = {.ids = {1, 2, 3, 4, 5}, .begin = 3};
  EXPECT_EQ(CutContext(whole, 9).ids, whole.ids);
  const Continuation cut = CutContext(whole, 4);
  EXPECT_THAT(cut.ids, ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(cut.begin, 2);
  const Continuation short_context = CutContext({.ids = {1, 2, 3, 4, 5}, .begin = 1}, 2);
  EXPECT_THAT(short_context.ids, ElementsAre(4, 5));
  EXPECT_EQ(short_context.begin, 1);
}

// As get_rolling_token_windows() gives them for max_seq_len 4 and context_len 1, and 3.
TEST(RollingContinuationsTest, AreTheWindowsOfTheHarness) {
  const Ids ids = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto all = RollingContinuations(ids, 0, {});
  ASSERT_EQ(all.size(), 1);
  EXPECT_THAT(all[0].ids, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  const auto apart = RollingContinuations(ids, 0, {.window = 4, .stride = 4});
  ASSERT_EQ(apart.size(), 3);
  EXPECT_THAT(apart[0].ids, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(apart[1].ids, ElementsAre(4, 5, 6, 7, 8));
  EXPECT_EQ(apart[1].begin, 1);
  EXPECT_THAT(apart[2].ids, ElementsAre(5, 6, 7, 8, 9));
  EXPECT_EQ(apart[2].begin, 4);
  const auto overlapping = RollingContinuations(ids, 0, {.window = 4, .stride = 2});
  ASSERT_EQ(overlapping.size(), 4);
  EXPECT_THAT(overlapping[1].ids, ElementsAre(2, 3, 4, 5, 6));
  EXPECT_EQ(overlapping[1].begin, 3);
  EXPECT_THAT(overlapping[3].ids, ElementsAre(5, 6, 7, 8, 9));
  EXPECT_EQ(overlapping[3].begin, 4);
}

TEST(LikeliestTest, IsTheFirstOfEquals) {
  const std::vector<ContinuationScore> scores = {{-3, 1, true}, {-2, 1, true}, {-2, 1, true}};
  EXPECT_EQ(Likeliest(scores), 1);
}

}  // namespace
}  // namespace hippodrome::continuation_test
