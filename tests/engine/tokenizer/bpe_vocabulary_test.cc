#include "engine/tokenizer/bpe_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "engine/tokenizer/byte_symbols.h"

namespace hippodrome::bpe_vocabulary_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// The 256 bytes by their numbers, "ab" 256, "abc" 257.
Json Tokens() {
  Json tokens;
  for (int byte = 0; byte < 256; ++byte) tokens[SymbolOfByte(static_cast<uint8_t>(byte))] = byte;
  tokens["ab"] = 256;
  tokens["abc"] = 257;
  return tokens;
}

constexpr char kMerges[] = "#version: 0.2\na b\nab c\n";

TEST(BpeVocabulary, TakesTheOrderOfMergesForTheirRank) {
  for (const std::string merges : {kMerges, "a b\nab c", "a b\r\nab c\r\n\r\n"}) {
    const auto vocabulary = ParseBpeVocabulary(Tokens().dump(), merges);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
    EXPECT_EQ(vocabulary->tokens.size(), 258u);
    EXPECT_EQ(vocabulary->tokens[257], "abc");
    EXPECT_EQ(vocabulary->end_of_text, -1);
    ASSERT_EQ(vocabulary->merges.size(), 2u);
    const BpeMerge& merge = vocabulary->merges.at(BpeVocabulary::PairKey(256, 'c'));
    EXPECT_EQ(merge.rank, 1u);
    EXPECT_EQ(merge.token, 257);
  }
}

struct BadFiles {
  std::string vocab;
  std::string merges;
  std::string message;
};

std::string Changed(const std::function<void(Json&)>& change) {
  Json tokens = Tokens();
  change(tokens);
  return tokens.dump();
}

TEST(BpeVocabulary, NamesTheLineOrTokenAtFault) {
  const std::string good = Tokens().dump();
  const BadFiles bad[] = {
      {"", kMerges, "vocab.json: not JSON"},
      {"[1]", kMerges, "vocab.json: expected a JSON object, found array"},
      {"{}", kMerges, "vocab.json: there is no token for byte 0"},
      {Changed([](Json& t) { t["ab"] = "x"; }), kMerges,
       "\"ab\" has id \"x\", expected an integer"},
      {Changed([](Json& t) { t["ab"] = -1; }), kMerges, "\"ab\" has id -1, expected an integer"},
      {Changed([](Json& t) { t["ab"] = 258; }), kMerges,
       "\"ab\" has id 258, expected an integer in [0, 257]"},
      {Changed([](Json& t) { t["ab"] = uint64_t{1} << 40; }), kMerges, "has id 1099511627776"},
      {Changed([](Json& t) { t["ab"] = Json::array(); }), kMerges, "\"ab\" has id [], expected"},
      {Changed([](Json& t) { t["ab"] = 97; }), kMerges, "has id 97, which another token has"},
      {Changed([](Json& t) { t[""] = 258; }), kMerges, "token \"\" is not written in byte-level"},
      {Changed([](Json& t) { t["a b"] = 258; }), kMerges, "token \"a b\" is not written in"},
      {Changed([](Json& t) { t["\u20ac"] = 258; }), kMerges,
       "is not written in byte-level symbols"},
      {Changed([](Json& t) {
         t.erase("a");
         t["cb"] = 97;
       }),
       kMerges, "there is no token for byte 97 (\"a\")"},
      {good, "a b\nab\n", "merges.txt:2: \"ab\": expected two tokens"},
      {good, "a  b\n", "merges.txt:1: \"a  b\": expected two tokens in byte-level symbols"},
      {good, " b\n", "merges.txt:1: \" b\": expected two tokens"},
      {good, "a b c\n", "merges.txt:1: \"a b c\": expected two tokens"},
      {good, "a \xff\n", "merges.txt:1: \"a ?\": expected two tokens"},
      {good, "ab b\n", "merges.txt:1: \"ab b\": \"abb\" is not in vocab.json"},
      {good, "abcd b\n", "\"abcd\" is not in vocab.json"},
      {good, "a abcd\n", "\"abcd\" is not in vocab.json"},
      {good, "a b\na b\n", "merges.txt:2: \"a b\": this merge appears twice"},
      {good, "a b\n#version: 0.2\n", "merges.txt:2: \"#version: 0.2\": "},
  };
  for (const BadFiles& files : bad) {
    const absl::Status status = ParseBpeVocabulary(files.vocab, files.merges).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << files.message;
    EXPECT_THAT(Message(status), HasSubstr(files.message));
  }
}

TEST(ByteSymbols, StandForEveryByteOnce) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto bytes = BytesOfSymbols(SymbolOfByte(static_cast<uint8_t>(byte)));
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(*bytes, std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(SymbolOfByte(' '), "\u0120");
  EXPECT_EQ(SymbolOfByte(0), "\u0100");
  EXPECT_EQ(SymbolOfByte(0xad), "\u0143");
}

}  // namespace
}  // namespace hippodrome::bpe_vocabulary_test
