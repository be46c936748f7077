#include "server/batching/running_sequence.h"

#include <gtest/gtest.h>

#include <random>

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

TEST(TextDecoderTest, HasNoTextWithoutTokenizer) {
  TextDecoder decoder(nullptr, {});
  EXPECT_EQ(decoder.Append(5), "");
  EXPECT_EQ(decoder.Finish(), "");
}

}  // namespace
}  // namespace hippodrome::running_sequence_test
