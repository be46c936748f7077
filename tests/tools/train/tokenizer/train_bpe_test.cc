#include "tools/train/tokenizer/train_bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "engine/base/status.h"
#include "engine/tokenizer/bpe.h"

namespace hippodrome::train_bpe_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

void NoProgress(int64_t, int64_t) {}

absl::StatusOr<BpeFiles> TrainOn(std::string_view text, int64_t vocab_size) {
  WordCounts counts;
  CountGpt2Words(text, counts);
  return TrainBpe(counts, vocab_size, NoProgress);
}

// Words of a made-up language with common stems and endings.
std::string Text() {
  std::minstd_rand random(4);
  const std::string stems[] = {"hors", "rid", "run", "\u00e9t\u00e9", "jump", "12", "\"quot\\"};
  const std::string ends[] = {"e", "er", "ing", "ed", "'s", ".\n", "!  "};
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += (random() % 5 == 0 ? "" : " ") + stems[random() % std::size(stems)] +
            ends[random() % std::size(ends)];
  }
  return text;
}

// " a": 4 times; "ab": 3; after " a", " ab": 3 and "bc": 2, " abc": 2.
TEST(TrainBpeTest, MergesTheMostFrequentPair) {
  const auto files = TrainOn(" ab abc abc a", 260);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->merges, "#version: 0.2\n\u0120 a\n\u0120a b\n\u0120ab c\n");
  EXPECT_THAT(files->vocab_json, StartsWith("{\"!\": 0, \"\\\"\": 1, "));
  EXPECT_THAT(files->vocab_json,
              HasSubstr("\u0143\": 255, \"\u0120a\": 256, \"\u0120ab\": 257, \"\u0120abc\": 258, "
                        "\"<|endoftext|>\": 259}"));
}

TEST(TrainBpeTest, TheServingTokenizerReadsItAndRoundTrips) {
  const std::string text = Text();
  const auto files = TrainOn(text, 320);
  ASSERT_TRUE(files.ok()) << files.status();
  const auto tokenizer = BpeTokenizer::Parse(files->vocab_json, files->merges);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocab_size(), 320);
  EXPECT_EQ((*tokenizer)->end_of_text(), 319);
  const auto ids = (*tokenizer)->Encode(text);
  EXPECT_EQ((*tokenizer)->Decode(ids), text);
  EXPECT_LT(ids.size(), text.size() / 2);
  const std::string bytes = "\xff\x01 new \u4e2d text\n\n";
  EXPECT_EQ((*tokenizer)->Decode((*tokenizer)->Encode(bytes)), bytes);
}

TEST(TrainBpeTest, MarkersOfDocumentsAreNoWords) {
  const auto with = TrainOn(Text() + "<|endoftext|>" + Text(), 300);
  WordCounts counts;
  CountGpt2Words(Text(), counts);
  CountGpt2Words(Text(), counts);
  const auto without = TrainBpe(counts, 300, NoProgress);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->merges, without->merges);
}

TEST(TrainBpeTest, RefusesSizesThatCannotBe) {
  EXPECT_THAT(Message(TrainOn("abc", 256).status()), HasSubstr("has 256 tokens, expected 257"));
  EXPECT_TRUE(TrainOn("", 257).ok());
  EXPECT_FALSE(TrainOn("abc", int64_t{1} << 40).ok());
  EXPECT_THAT(Message(TrainOn("abc abd", 400).status()),
              HasSubstr("the text gives only 258 tokens, asked for are 400"));
}

}  // namespace
}  // namespace hippodrome::train_bpe_test
