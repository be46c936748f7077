#include "server/batching/running_sequence.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/testing/byte_tokenizer.h"

namespace hippodrome::running_sequence_test {
namespace {

TEST(TextDecoderTest, ReturnsWholeCharacters) {
  const auto tokenizer = NewByteTokenizer();
  TextDecoder decoder(tokenizer.get(), {});
  const std::string text = "a\u00e9\u20ac\U0001F600";
  std::string out;
  for (const int32_t token : tokenizer->Encode(text)) {
    const std::string piece = decoder.Append(token);
    EXPECT_TRUE(piece.empty() || (static_cast<unsigned char>(piece[0]) & 0xC0) != 0x80);
    out += piece;
  }
  EXPECT_EQ(out + decoder.Finish(), text);
}

TEST(TextDecoderTest, ReplacesAnIncompleteCharacterAtTheEnd) {
  const auto tokenizer = NewByteTokenizer();
  TextDecoder decoder(tokenizer.get(), {});
  EXPECT_EQ(decoder.Append('a'), "a");
  EXPECT_EQ(decoder.Append(0xE2), "");
  EXPECT_EQ(decoder.Finish(), "\uFFFD");
}

// The stop string shares its first byte with other characters.
TEST(TextDecoderTest, StopsAtACharacterThatSharesBytes) {
  const auto tokenizer = NewByteTokenizer();
  TextDecoder decoder(tokenizer.get(), {"\u00e9"});
  std::string out;
  for (const int32_t token : tokenizer->Encode("\u00e8\u00ea\u00e9x")) out += decoder.Append(token);
  EXPECT_EQ(out, "\u00e8\u00ea");
  EXPECT_TRUE(decoder.stopped());
}

// Wherever a text is cut, what is pending there makes it whole again.
TEST(TextDecoderTest, GoesOnWhereAnotherOneEnded) {
  const auto tokenizer = NewByteTokenizer();
  const std::vector<std::string> stops = {"b\u20accd", "\u20ac\u20ac"};
  for (const char* text : {"ab\u20acc\u00e9b\u20accde", "a\u20acb\u20ac\u20acx", "ab\u20acc"}) {
    const std::vector<int32_t> tokens = tokenizer->Encode(text);
    TextDecoder whole(tokenizer.get(), stops);
    std::string expected;
    for (const int32_t token : tokens) expected += whole.Append(token);
    expected += whole.Finish();
    for (size_t cut = 0; cut <= tokens.size(); ++cut) {
      TextDecoder before(tokenizer.get(), stops);
      std::string out;
      for (size_t i = 0; i < cut; ++i) out += before.Append(tokens[i]);
      if (before.stopped()) {
        EXPECT_EQ(before.pending(), "");
        continue;
      }
      TextDecoder after(tokenizer.get(), stops, before.pending());
      for (size_t i = cut; i < tokens.size(); ++i) out += after.Append(tokens[i]);
      out += after.Finish();
      EXPECT_EQ(out, expected) << text << " after " << cut;
      EXPECT_EQ(after.stopped(), whole.stopped());
    }
  }
}

TEST(TextDecoderTest, AnIncompleteCharacterMayStayBehind) {
  const auto tokenizer = NewByteTokenizer();
  TextDecoder decoder(tokenizer.get(), {"ax"});
  EXPECT_EQ(decoder.Append('a'), "");
  EXPECT_EQ(decoder.Append(0xE2), "");
  EXPECT_EQ(decoder.pending(), "a\xE2");
  EXPECT_EQ(decoder.FinishCharacters(), "a");
  EXPECT_EQ(decoder.pending(), "\xE2");
}

// Other stop strings than before: what is certain now is not lost.
TEST(TextDecoderTest, GivesOutWhatNoStopStringHoldsAnyMore) {
  const auto tokenizer = NewByteTokenizer();
  TextDecoder decoder(tokenizer.get(), {"cx"}, "abc");
  EXPECT_EQ(decoder.pending(), "abc");
  EXPECT_EQ(decoder.Append('d'), "abcd");
}

TEST(TextDecoderTest, HasNoTextWithoutTokenizer) {
  TextDecoder decoder(nullptr, {});
  EXPECT_EQ(decoder.Append(5), "");
  EXPECT_EQ(decoder.Finish(), "");
}

}  // namespace
}  // namespace hippodrome::running_sequence_test
