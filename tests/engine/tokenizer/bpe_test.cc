#include "engine/tokenizer/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "engine/base/status.h"
#include "engine/tokenizer/bpe_vocabulary.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::bpe_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kDirectory = std::string(HIPPODROME_TESTDATA) + "/tokenizer";

const BpeTokenizer& Tokenizer() {
  static const auto* const tokenizer = new auto(BpeTokenizer::Read(kDirectory));
  EXPECT_TRUE(tokenizer->ok()) << tokenizer->status();
  return ***tokenizer;
}

TEST(BpeTokenizer, GivesTheGoldenIds) {
  const auto golden = nlohmann::json::parse(FileContent(kDirectory + "/tokenizer_golden.json"));
  ASSERT_EQ(golden.size(), 19u);
  for (const auto& entry : golden) {
    const std::string text = entry["text"];
    const std::vector<int32_t> ids = entry["ids"];
    EXPECT_EQ(Tokenizer().Encode(text), ids) << text;
    EXPECT_EQ(Tokenizer().Decode(ids), text);
  }
}

TEST(BpeTokenizer, KnowsItsTokens) {
  EXPECT_EQ(Tokenizer().vocab_size(), 2048);
  EXPECT_EQ(Tokenizer().end_of_text(), 2047);
  EXPECT_EQ(Tokenizer().Bytes(2047), "<|endoftext|>");
  EXPECT_EQ(Tokenizer().Bytes(2046), " fire");
  EXPECT_EQ(Tokenizer().Bytes(198), "\n");
  EXPECT_EQ(Tokenizer().Bytes(-1), "");
  EXPECT_EQ(Tokenizer().Bytes(2048), "");
}

TEST(BpeTokenizer, TakesSpecialTokensInTextForCharacters) {
  const std::vector<int32_t> ids = Tokenizer().Encode("<|endoftext|>");
  EXPECT_GT(ids.size(), 1u);
  EXPECT_EQ(Tokenizer().Decode(ids), "<|endoftext|>");
}

TEST(BpeTokenizer, TakesNoTextForNoTokens) {
  EXPECT_THAT(Tokenizer().Encode(""), IsEmpty());
  EXPECT_EQ(Tokenizer().Decode({}), "");
}

TEST(BpeTokenizer, KeepsEveryByte) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string text(random() % 200, '\0');
    for (char& c : text) c = static_cast<char>(random());
    EXPECT_EQ(Tokenizer().Decode(Tokenizer().Encode(text)), text);
  }
}

TEST(BpeTokenizer, EncodesLongWords) {
  // Quadratic merging would take hours.
  for (const std::string unit : {"a", "er", " ", "\xff", "\xc3\xa9"}) {
    std::string text;
    while (text.size() < 300000) text += unit;
    EXPECT_EQ(Tokenizer().Decode(Tokenizer().Encode(text)), text);
  }
}

// The definition: merge every occurrence of the pair of lowest rank, until there is none.
std::vector<int32_t> MergeSlowly(const BpeVocabulary& vocabulary, const std::string& word) {
  std::vector<int32_t> ids;
  for (const char c : word) ids.push_back(vocabulary.byte_tokens[static_cast<uint8_t>(c)]);
  while (true) {
    const BpeMerge* best = nullptr;
    uint64_t best_key = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = vocabulary.merges.find(BpeVocabulary::PairKey(ids[i], ids[i + 1]));
      if (found == vocabulary.merges.end()) continue;
      if (best != nullptr && best->rank <= found->second.rank) continue;
      best = &found->second;
      best_key = found->first;
    }
    if (best == nullptr) return ids;
    std::vector<int32_t> merged;
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool here =
          i + 1 < ids.size() && BpeVocabulary::PairKey(ids[i], ids[i + 1]) == best_key;
      merged.push_back(here ? best->token : ids[i]);
      if (here) ++i;
    }
    ids = merged;
  }
}

// Of letters alone, which are one word for the splitting pattern.
TEST(BpeTokenizer, MergesWordsAsTheDefinitionDoes) {
  const auto vocabulary = ParseBpeVocabulary(FileContent(kDirectory + "/vocab.json"),
                                             FileContent(kDirectory + "/merges.txt"));
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  std::mt19937 random(2);
  const std::string letters = "eeettaaooinnhsrdl";
  for (int round = 0; round < 2000; ++round) {
    std::string word(1 + random() % 40, '\0');
    for (char& c : word) c = letters[random() % letters.size()];
    if (random() % 2 == 0) word.insert(0, " ");
    EXPECT_EQ(Tokenizer().Encode(word), MergeSlowly(*vocabulary, word)) << word;
  }
}

TEST(BpeTokenizer, TellsWhichFileIsMissing) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(BpeTokenizer::Read(directory.path()).status()));
  directory.Write("vocab.json", "{}");
  const absl::Status status = BpeTokenizer::Read(directory.path()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr(directory.File("merges.txt")));
  directory.Write("merges.txt", "");
  EXPECT_THAT(Message(BpeTokenizer::Read(directory.path()).status()),
              HasSubstr(directory.File("vocab.json") + ": there is no token for byte 0"));
}

}  // namespace
}  // namespace hippodrome::bpe_test
