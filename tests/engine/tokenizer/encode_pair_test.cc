#include "engine/tokenizer/encode_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hippodrome::encode_pair_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Field;

const WordPieceTokenizer& Tokenizer() {
  static const auto* const tokenizer =
      new auto(WordPieceTokenizer::Parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n"));
  EXPECT_TRUE(tokenizer->ok()) << tokenizer->status();
  return ***tokenizer;
}

// `size` pieces with ids from `first` on, one character each.
std::vector<WordPiece> Pieces(int32_t first, int64_t size) {
  std::vector<WordPiece> pieces;
  for (int32_t i = 0; i < size; ++i) pieces.push_back({first + i, i, i + 1, i});
  return pieces;
}

EncodedText Encode(int64_t a, int64_t b, int64_t most, Truncation truncation,
                   TruncationSide side = TruncationSide::kRight) {
  return EncodePair(Tokenizer(), Pieces(10, a), Pieces(20, b), true, most, truncation, side);
}

TEST(EncodePair, LaysOutOneText) {
  const EncodedText text =
      EncodePair(Tokenizer(), Pieces(10, 2), {}, false, 128, Truncation::kLongestFirst);
  EXPECT_THAT(text.ids, ElementsAre(2, 10, 11, 3));
  EXPECT_THAT(text.types, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(text.sequence, ElementsAre(-1, 0, 0, -1));
  EXPECT_EQ(text.dropped, 0);
}

TEST(EncodePair, LaysOutTwoTexts) {
  const EncodedText text = Encode(2, 1, 128, Truncation::kLongestFirst);
  EXPECT_THAT(text.ids, ElementsAre(2, 10, 11, 3, 20, 3));
  EXPECT_THAT(text.types, ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(text.sequence, ElementsAre(-1, 0, 0, -1, 1, -1));
  ASSERT_EQ(text.pieces.size(), 6u);
  EXPECT_EQ(text.pieces[2].begin, 1);
  EXPECT_EQ(text.pieces[2].end, 2);
  EXPECT_EQ(text.pieces[2].word, 1);
  const std::vector<WordPiece> added = {text.pieces[0], text.pieces[3], text.pieces[5]};
  EXPECT_THAT(added, Each(AllOf(Field(&WordPiece::begin, 0), Field(&WordPiece::end, 0),
                                Field(&WordPiece::word, -1))));
  EXPECT_EQ(text.pieces[5].id, 3);
}

TEST(EncodePair, LaysOutEmptyTexts) {
  EXPECT_THAT(EncodePair(Tokenizer(), {}, {}, false, 3, Truncation::kLongestFirst).ids,
              ElementsAre(2, 3));
  EXPECT_THAT(Encode(0, 0, 3, Truncation::kLongestFirst).ids, ElementsAre(2, 3, 3));
}

TEST(EncodePair, CutsOneTextToItsRoom) {
  const auto encode = [](TruncationSide side) {
    return EncodePair(Tokenizer(), Pieces(10, 5), {}, false, 4, Truncation::kLongestFirst, side);
  };
  EXPECT_THAT(encode(TruncationSide::kRight).ids, ElementsAre(2, 10, 11, 3));
  EXPECT_THAT(encode(TruncationSide::kLeft).ids, ElementsAre(2, 13, 14, 3));
  EXPECT_EQ(encode(TruncationSide::kLeft).dropped, 3);
  EXPECT_EQ(encode(TruncationSide::kLeft).pieces[1].begin, 3);
}

struct Cut {
  int64_t a, b, most;      // tokens of the texts, tokens in all
  int64_t kept_a, kept_b;  // tokens that remain
};

// As the reference library cuts.
TEST(EncodePair, CutsTheLongerText) {
  const Cut cuts[] = {
      {5, 5, 13, 5, 5},  // enough room
      {6, 2, 10, 5, 2}, {2, 6, 10, 2, 5}, {7, 1, 5, 1, 1}, {1, 7, 5, 1, 1},
      {5, 5, 9, 3, 3},   // both
      {5, 5, 10, 3, 4},  // the first of equals
      {5, 6, 10, 3, 4}, {6, 5, 10, 4, 3}, {4, 3, 9, 3, 3}, {4, 3, 8, 3, 2},
      {3, 4, 8, 2, 3},  {1, 1, 4, 0, 1},  {2, 1, 4, 1, 0}, {3, 3, 3, 0, 0},
      {0, 4, 5, 0, 2},  {4, 0, 5, 2, 0},
  };
  for (const Cut& cut : cuts) {
    const EncodedText text = Encode(cut.a, cut.b, cut.most, Truncation::kLongestFirst);
    const auto kept = [&text](int8_t i) {
      return std::count(text.sequence.begin(), text.sequence.end(), i);
    };
    EXPECT_EQ(kept(0), cut.kept_a) << cut.a << " " << cut.b << " " << cut.most;
    EXPECT_EQ(kept(1), cut.kept_b) << cut.a << " " << cut.b << " " << cut.most;
    EXPECT_EQ(text.dropped, cut.a + cut.b - cut.kept_a - cut.kept_b);
  }
}

TEST(EncodePair, CutsBothTextsOnTheSideAskedFor) {
  EXPECT_THAT(Encode(4, 4, 7, Truncation::kLongestFirst, TruncationSide::kRight).ids,
              ElementsAre(2, 10, 11, 3, 20, 21, 3));
  EXPECT_THAT(Encode(4, 4, 7, Truncation::kLongestFirst, TruncationSide::kLeft).ids,
              ElementsAre(2, 12, 13, 3, 22, 23, 3));
}

TEST(EncodePair, CutsTheSecondTextOnly) {
  EXPECT_THAT(Encode(3, 4, 8, Truncation::kOnlySecond).ids,
              ElementsAre(2, 10, 11, 12, 3, 20, 21, 3));
  EXPECT_THAT(Encode(3, 4, 8, Truncation::kOnlySecond, TruncationSide::kLeft).ids,
              ElementsAre(2, 10, 11, 12, 3, 22, 23, 3));
  // The first is too long by itself.
  const EncodedText text = Encode(3, 4, 5, Truncation::kOnlySecond);
  EXPECT_THAT(text.ids, ElementsAre(2, 10, 11, 12, 3, 3));
  EXPECT_EQ(text.dropped, 4);
  EXPECT_EQ(EncodePair(Tokenizer(), Pieces(10, 3), {}, false, 4, Truncation::kOnlySecond).dropped,
            0);
}

TEST(EncodePair, CutsNothingUnlessAsked) {
  const EncodedText text = Encode(3, 4, 3, Truncation::kNone);
  EXPECT_EQ(text.ids.size(), 10u);
  EXPECT_EQ(text.dropped, 0);
}

}  // namespace
}  // namespace hippodrome::encode_pair_test
