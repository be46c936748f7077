#include "engine/tasks/tagged_spans.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace hippodrome::tagged_spans_test {
namespace {

constexpr float kRounding = 1e-6F;  // a few roundings of numbers up to 1

const std::vector<std::string> kLabels = {"O", "B-PER", "I-PER", "B-LOC", "I-LOC"};
enum Label { kO, kBPer, kIPer, kBLoc, kILoc };

// A text between [CLS] and [SEP], its words one code point long, with spaces between.
class Text {
 public:
  Text() { Add(-1, -1, kO, 1); }

  // A token that has `label` with this probability; the others share the rest.
  Text& Word(Label label, float probability) {
    ++word_;
    place_ += 2;
    return Add(0, word_, label, probability);
  }
  // One that goes on where the last one ended.
  Text& Piece(Label label, float probability) {
    ++place_;
    return Add(0, word_, label, probability);
  }

  std::vector<TaggedSpan> Spans(Aggregation aggregation) {
    Add(-1, -1, kBLoc, 0.9);  // [SEP], which must not be read
    return TaggedSpans(input_, logits_, kLabels, aggregation);
  }

 private:
  Text& Add(int8_t sequence, int64_t word, Label label, float probability) {
    input_.ids.push_back(0);
    input_.types.push_back(0);
    input_.sequence.push_back(sequence);
    input_.pieces.push_back({.begin = place_, .end = place_ + 1, .word = word});
    for (size_t other = 0; other < kLabels.size(); ++other) {
      logits_.push_back(std::log(other == label ? probability : (1 - probability) / 4));
    }
    return *this;
  }

  EncodedText input_;
  std::vector<float> logits_;
  int64_t word_ = -1;
  int64_t place_ = -2;
};

using Place = std::tuple<std::string, int64_t, int64_t>;
std::vector<Place> PlacesOf(const std::vector<TaggedSpan>& spans) {
  std::vector<Place> places;
  for (const TaggedSpan& span : spans) places.emplace_back(span.label, span.begin, span.end);
  return places;
}

TEST(TaggedSpansTest, EachTokenForItself) {
  const auto spans =
      Text().Word(kO, 0.9).Word(kBPer, 0.8).Piece(kIPer, 0.6).Spans(Aggregation::kNone);
  EXPECT_EQ(PlacesOf(spans), (std::vector<Place>{{"B-PER", 2, 3}, {"I-PER", 3, 4}}));
  EXPECT_EQ(spans[0].token, 2);
  EXPECT_NEAR(spans[0].score, 0.8, kRounding);
}

TEST(TaggedSpansTest, NeighboursOfOneEntityAreOne) {
  const auto spans = Text()
                         .Word(kBPer, 0.8)
                         .Word(kIPer, 0.6)
                         .Word(kO, 0.9)
                         .Word(kILoc, 0.7)
                         .Spans(Aggregation::kSimple);
  EXPECT_EQ(PlacesOf(spans), (std::vector<Place>{{"PER", 0, 3}, {"LOC", 6, 7}}));
  EXPECT_NEAR(spans[0].score, 0.7, kRounding);
  EXPECT_EQ(spans[0].token, -1);
}

TEST(TaggedSpansTest, AnotherEntityOrABeginningEndsOne) {
  const auto spans = Text()
                         .Word(kBPer, 0.8)
                         .Word(kBPer, 0.8)
                         .Word(kILoc, 0.8)
                         .Word(kIPer, 0.8)
                         .Spans(Aggregation::kSimple);
  EXPECT_EQ(PlacesOf(spans),
            (std::vector<Place>{{"PER", 0, 1}, {"PER", 2, 3}, {"LOC", 4, 5}, {"PER", 6, 7}}));
}

TEST(TaggedSpansTest, LabelsWithoutPrefixGroupWithTheirLike) {
  EncodedText input;
  std::vector<float> logits;
  for (int64_t t = 0; t < 3; ++t) {
    input.ids.push_back(0);
    input.types.push_back(0);
    input.sequence.push_back(0);
    input.pieces.push_back({.begin = t, .end = t + 1, .word = t});
    logits.insert(logits.end(), {t < 2 ? 5.0F : 0.0F, t < 2 ? 0.0F : 5.0F});
  }
  const auto spans = TaggedSpans(input, logits, {"NOUN", "VERB"}, Aggregation::kSimple);
  EXPECT_EQ(PlacesOf(spans), (std::vector<Place>{{"NOUN", 0, 2}, {"VERB", 2, 3}}));
}

// A word in three pieces: PER .5, O .9, LOC .45; by pieces it would be PER and LOC.
Text ThreePieces() {
  return Text().Word(kBPer, 0.5).Piece(kO, 0.9).Piece(kBLoc, 0.45).Word(kIPer, 0.7);
}

TEST(TaggedSpansTest, WordsByTheirFirstToken) {
  const auto spans = ThreePieces().Spans(Aggregation::kFirst);
  EXPECT_EQ(PlacesOf(spans), (std::vector<Place>{{"PER", 0, 5}}));
  EXPECT_NEAR(spans[0].score, 0.6, kRounding);
}

TEST(TaggedSpansTest, WordsByTheirSurestToken) {
  EXPECT_EQ(PlacesOf(ThreePieces().Spans(Aggregation::kMax)), (std::vector<Place>{{"PER", 4, 5}}));
}

TEST(TaggedSpansTest, WordsByTheMeanOfTheirTokens) {
  // O: (.125 + .9 + .1375) / 3; B-PER: (.5 + .025 + .1375) / 3.
  EXPECT_EQ(PlacesOf(ThreePieces().Spans(Aggregation::kAverage)),
            (std::vector<Place>{{"PER", 4, 5}}));
  const auto spans =
      Text().Word(kBPer, 0.4).Piece(kBLoc, 0.8).Piece(kBLoc, 0.6).Spans(Aggregation::kAverage);
  ASSERT_EQ(PlacesOf(spans), (std::vector<Place>{{"LOC", 0, 3}}));
  EXPECT_NEAR(spans[0].score, (0.15 + 0.8 + 0.6) / 3, kRounding);
}

}  // namespace
}  // namespace hippodrome::tagged_spans_test
