#include "engine/generation/speculation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace hippodrome::speculation_test {
namespace {

using Ids = std::vector<int32_t>;

Ids Next(const Ids& text, int64_t most) { return LookUpNext(text, most).tokens; }

TEST(LookUpNextTest, GivesWhatFollowedTheLongestCommonEnd) {
  const Ids text = {1, 2, 3, 4, 50, 51, 52, 9, 2, 3, 4, 60, 61, 1, 2, 3, 4};
  EXPECT_EQ(Next(text, 3), (Ids{50, 51, 52}));  // the other one is later
  EXPECT_EQ(LookUpNext(text, 3).basis, DraftBasis::kFewTokens);
  EXPECT_EQ(Next(text, 1), (Ids{50}));
  EXPECT_EQ(Next({2, 3, 4, 50, 2, 3, 4, 60, 2, 3, 4}, 2), (Ids{60, 2}));  // the last one
}

TEST(LookUpNextTest, SaysHowMuchWasThereBefore) {
  EXPECT_EQ(LookUpNext(Ids{1, 2, 1}, 1).basis, DraftBasis::kOneToken);
  EXPECT_EQ(LookUpNext(Ids{1, 2, 3, 1, 2}, 1).basis, DraftBasis::kTwoTokens);
  EXPECT_EQ(LookUpNext(Ids{1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6}, 1).basis,
            DraftBasis::kManyTokens);
}

TEST(LookUpNextTest, FindsNothingBehindANewToken) {
  for (const Ids& text : {Ids{}, Ids{1}, Ids{1, 2, 3, 4, 5}}) {
    EXPECT_EQ(Next(text, 4), Ids());
  }
  EXPECT_EQ(Next({1, 2, 3, 9, 1, 2, 3}, 0), Ids());
}

TEST(LookUpNextTest, GoesOnBehindTheEndWithWhatItGave) {
  EXPECT_EQ(Next({5, 5}, 6), (Ids{5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(Next({1, 2, 3, 1, 2, 3}, 7), (Ids{1, 2, 3, 1, 2, 3, 1}));
}

TEST(LookUpNextTest, LooksAtTheLastTokensAlone) {
  Ids text = {1, 2, 3};
  Ids rest(kSearchedTokens);
  std::iota(rest.begin(), rest.end(), 100);
  text.insert(text.end(), rest.begin(), rest.end());
  text.insert(text.end(), {1, 2, 3});
  EXPECT_EQ(Next(text, 2), Ids());
  text.erase(text.begin() + 3, text.begin() + 100);
  EXPECT_EQ(Next(text, 2), (Ids{197, 198}));
}

constexpr DraftBasis kOne = DraftBasis::kOneToken, kTwo = DraftBasis::kTwoTokens;
constexpr DraftBasis kFew = DraftBasis::kFewTokens, kMany = DraftBasis::kManyTokens;

TEST(DraftLengthTest, DraftsThatComeTrueMakeItLonger) {
  DraftLength length;
  const int64_t first = length.In(1, kFew);
  EXPECT_GT(first, 1);
  for (int i = 0; i < 5; ++i) length.Learn(kFew, 4, 4);
  EXPECT_GT(length.In(1, kFew), 4 * first);
  for (int i = 0; i < 1000; ++i) length.Learn(kFew, 8, 8);  // and it stays a number
  EXPECT_GT(length.In(1, kFew), 1000);
  EXPECT_GT(length.In(64, kFew), 1000);
}

TEST(DraftLengthTest, ItStopsWhereDraftsFailAndTriesAgainLater) {
  DraftLength length;
  int failed = 0;
  for (; length.In(1, kTwo) > 0; ++failed) length.Learn(kTwo, 1, 0);
  EXPECT_LT(failed, 20);
  int waited = 0;
  for (; length.In(1, kTwo) == 0; ++waited) length.Forget();
  EXPECT_LT(waited, 20);
}

TEST(DraftLengthTest, LongerCommonEndsPromiseMore) {
  DraftLength length;
  EXPECT_LT(length.In(1, kOne), length.In(1, kTwo));
  EXPECT_LT(length.In(1, kTwo), length.In(1, kFew));
  EXPECT_LT(length.In(1, kFew), length.In(1, kMany));
  for (int i = 0; i < 30; ++i) length.Learn(kOne, 2, 0);
  EXPECT_EQ(length.In(1, kOne), 0);
  EXPECT_GT(length.In(1, kTwo), 0);  // each kind learns for itself
}

TEST(DraftLengthTest, ManySequencesNeedMoreCertainty) {
  DraftLength length;
  EXPECT_GT(length.In(1, kMany), length.In(8, kMany));
  EXPECT_EQ(length.In(64, kMany), 0);
  for (int i = 0; i < 10; ++i) length.Learn(kMany, 8, 8);
  EXPECT_GT(length.In(64, kMany), 0);
}

TEST(DraftLengthTest, WhatADraftCostsMakesItShorter) {
  const DraftLength length;
  EXPECT_GT(length.In(1, DraftBasis::kModel), length.In(1, DraftBasis::kModel, 0.1));
  EXPECT_GT(length.In(1, DraftBasis::kModel, 0.1), 0);
  EXPECT_EQ(length.In(1, DraftBasis::kModel, 1), 0);
}

}  // namespace
}  // namespace hippodrome::speculation_test
