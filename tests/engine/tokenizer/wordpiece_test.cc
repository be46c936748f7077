#include "engine/tokenizer/wordpiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::wordpiece_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kDirectory = std::string(HIPPODROME_TESTDATA) + "/tokenizer/wordpiece";

const WordPieceTokenizer& Tokenizer() {
  static const auto* const tokenizer = new auto(WordPieceTokenizer::Read(kDirectory));
  EXPECT_TRUE(tokenizer->ok()) << tokenizer->status();
  return ***tokenizer;
}

std::vector<std::string> Tokens(std::string_view text) {
  std::vector<std::string> tokens;
  for (const WordPiece& piece : Tokenizer().Tokenize(text)) {
    tokens.push_back(Tokenizer().Token(piece.id));
  }
  return tokens;
}

std::vector<int32_t> Ids(const std::vector<std::string>& tokens) {
  std::vector<int32_t> ids;
  for (const std::string& token : tokens) ids.push_back(Tokenizer().Find(token));
  return ids;
}

// id, begin, end, word
using Fields = std::vector<int64_t>;

std::vector<Fields> FieldsOf(std::string_view text) {
  std::vector<Fields> fields;
  for (const WordPiece& p : Tokenizer().Tokenize(text)) {
    fields.push_back({p.id, p.begin, p.end, p.word});
  }
  return fields;
}

// What Hugging Face's tokenizers 0.23.3 says with this vocabulary.
TEST(WordPieceTokenizer, GivesTheGoldenPieces) {
  const auto golden = nlohmann::json::parse(FileContent(kDirectory + "/golden.json"));
  ASSERT_EQ(golden.size(), 104u);
  for (const auto& entry : golden) {
    const std::vector<Fields> pieces = entry["pieces"];
    EXPECT_EQ(FieldsOf(entry["text"].get<std::string>()), pieces) << entry["text"];
  }
}

TEST(WordPieceTokenizer, KnowsItsTokens) {
  EXPECT_EQ(Tokenizer().vocab_size(), 228);
  EXPECT_EQ(Tokenizer().pad(), 0);
  EXPECT_EQ(Tokenizer().unk(), 2);
  EXPECT_EQ(Tokenizer().cls(), 3);
  EXPECT_EQ(Tokenizer().sep(), 4);
  EXPECT_EQ(Tokenizer().mask(), 5);
  EXPECT_TRUE(Tokenizer().IsSpecial(0));
  EXPECT_FALSE(Tokenizer().IsSpecial(1));  // [unused0]
  EXPECT_FALSE(Tokenizer().IsSpecial(-1));
  EXPECT_EQ(Tokenizer().Token(Tokenizer().Find("##ing")), "##ing");
  EXPECT_EQ(Tokenizer().Find("##in"), -1);
  EXPECT_EQ(Tokenizer().Token(-1), "");
  EXPECT_EQ(Tokenizer().Token(228), "");
}

TEST(WordPieceTokenizer, TakesTheLongestPieces) {
  EXPECT_THAT(Tokens("unaffable running"), ElementsAre("un", "##aff", "##able", "run", "##ning"));
  EXPECT_THAT(Tokens("playx \u0416x"), ElementsAre("play", "##x", "[UNK]"));
}

TEST(WordPieceTokenizer, CountsBytesThatAreNotUtf8AsOneCharacterEach) {
  const int64_t hello = Tokenizer().Find("hello");
  EXPECT_THAT(FieldsOf("\xff hel\xe4\xb8lo"), ElementsAre(Fields{hello, 2, 8, 0}));
  EXPECT_THAT(FieldsOf("[MASK]\xc3[MASK]"), ElementsAre(Fields{5, 0, 6, 0}, Fields{5, 7, 13, 1}));
}

TEST(WordPieceTokenizer, KeepsPlacesInOrderAndInsideForAnyBytes) {
  std::mt19937 random(1);
  const std::vector<std::string> parts = {"[MASK]",   " ",      "a",      "E", "\u0301",
                                          "\u302e",   "\u4e2d", "\ud55c", ".", "\xff",
                                          "\xe4\xb8", "[",      "\u200b"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = random() % 20; i > 0; --i) text += parts[random() % parts.size()];
    int64_t begin = 0;
    int64_t word = 0;
    for (const WordPiece& piece : Tokenizer().Tokenize(text)) {
      EXPECT_GE(piece.begin, begin);
      EXPECT_LT(piece.begin, piece.end);
      EXPECT_LE(piece.end, static_cast<int64_t>(text.size()));
      EXPECT_GE(piece.word, word);
      EXPECT_LE(piece.word, word + 1);
      begin = piece.begin;
      word = piece.word;
    }
  }
}

TEST(WordPieceTokenizer, TokenizesLongTexts) {
  // Quadratic work would take hours.
  for (const std::string unit : {"a", "\u0301\u0323", "[", "[MASK]", "\u4e2d", "\xff", " ", "a."}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    const auto pieces = Tokenizer().Tokenize(text);
    EXPECT_LE(pieces.size(), text.size());
  }
}

TEST(WordPieceTokenizer, JoinsPiecesAndPunctuation) {
  const std::vector<int32_t> ids = Ids({"[CLS]", "un", "##able", ",", "hello", "!", "[SEP]"});
  EXPECT_EQ(Tokenizer().Decode(ids, false), "[CLS] unable, hello! [SEP]");
  EXPECT_EQ(Tokenizer().Decode(ids, true), "unable, hello!");
  EXPECT_EQ(Tokenizer().Decode(Ids({"a", ".", "?", ";", "(", "-"}), false), "a.? ; ( -");
  EXPECT_EQ(Tokenizer().Decode(Ids({"can", "'", "t"}), false), "can ' t");
  EXPECT_EQ(Tokenizer().Decode(Ids({"##ing", "##ing"}), false), "##inging");
  EXPECT_EQ(Tokenizer().Decode(Ids({"[CLS]", "##ing"}), true), "##ing");
  EXPECT_EQ(Tokenizer().Decode(std::vector<int32_t>{-1, 228}, false), "");
  EXPECT_EQ(Tokenizer().Decode({}, false), "");
}

TEST(WordPieceTokenizer, TellsWhichFileIsAtFault) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(WordPieceTokenizer::Read(directory.path()).status()));
  directory.Write("vocab.txt", "[PAD]\n\n");
  const absl::Status status = WordPieceTokenizer::Read(directory.path()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr(directory.File("vocab.txt") + ":2: "));
}

}  // namespace
}  // namespace hippodrome::wordpiece_test
