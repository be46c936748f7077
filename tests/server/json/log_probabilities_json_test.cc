#include "server/json/log_probabilities_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/testing/byte_tokenizer.h"

namespace hippodrome::log_probabilities_json_test {
namespace {

using Json = nlohmann::ordered_json;

class LogProbabilitiesJsonTest : public testing::Test {
 protected:
  // The offsets of one-byte tokens.
  std::vector<int64_t> Offsets(const std::string& bytes) {
    LogProbabilitiesJson json(tokenizer_.get());
    for (const char c : bytes) json.Add(static_cast<unsigned char>(c), nullptr, true);
    return json.Take()["text_offset"];
  }

  const std::unique_ptr<BpeTokenizer> tokenizer_ = NewByteTokenizer();
};

TEST_F(LogProbabilitiesJsonTest, TokensHaveTheirTextsOrTheirBytes) {
  EXPECT_EQ(TokenName(tokenizer_.get(), 'a'), "a");
  EXPECT_EQ(TokenName(tokenizer_.get(), '\n'), "\n");
  EXPECT_EQ(TokenName(tokenizer_.get(), 0xE2), "bytes:\\xe2");
  EXPECT_EQ(TokenName(tokenizer_.get(), 256), "<|endoftext|>");
  EXPECT_EQ(TokenName(tokenizer_.get(), 257), "token_id:257");
  EXPECT_EQ(TokenName(nullptr, 5), "token_id:5");
}

TEST_F(LogProbabilitiesJsonTest, NoTwoTokensHaveOneName) {
  std::set<std::string> names;
  for (int32_t id = 0; id < 300; ++id) names.insert(TokenName(tokenizer_.get(), id));
  EXPECT_EQ(names.size(), 300u);
}

TEST_F(LogProbabilitiesJsonTest, AllFourListsHaveOneEntryForEachToken) {
  LogProbabilitiesJson json(tokenizer_.get());
  const float p = -1.2345678f;
  const TokenScores c{.log_probability = p, .likeliest = {{'b', -0.25f}, {'c', p}}};
  const TokenScores scores{.log_probability = p, .likeliest = {{'b', -0.25f}, {'c', p}}};
  json.Add('a', nullptr, true);
  json.Add('c', &c, true);
  json.Add('d', &scores, true);
  EXPECT_EQ(json.Take().dump(),
            R"({"tokens":["a","c","d"],"token_logprobs":[null,-1.2345677614212036,)"
            R"(-1.2345677614212036],"top_logprobs":[null,{"b":-0.25,"c":-1.2345677614212036},)"
            R"({"b":-0.25,"c":-1.2345677614212036,"d":-1.2345677614212036}],)"
            R"("text_offset":[0,1,2]})");
  EXPECT_TRUE(json.Take()["tokens"].empty());
  json.Add('e', &scores, true);
  EXPECT_EQ(json.Take()["text_offset"], Json({3}));
}

// A client that adds these up has the sum that the server has.
TEST_F(LogProbabilitiesJsonTest, FloatsAreReadBackToTheSameDouble) {
  for (const float p : {-1e-45f, -1.1754944e-38f, -0.1f, -3.3333333f, -17.123457f, -0.0f}) {
    LogProbabilitiesJson json(tokenizer_.get());
    const TokenScores scores{.log_probability = p, .likeliest = {{'a', p}}};
    json.Add('a', &scores, true);
    const Json read = Json::parse(json.Take().dump());
    EXPECT_EQ(read["token_logprobs"][0].get<double>(), static_cast<double>(p));
    EXPECT_EQ(read["top_logprobs"][0]["a"].get<double>(), static_cast<double>(p));
  }
}

TEST_F(LogProbabilitiesJsonTest, EveryNumberIsOne) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float p : {-inf, inf, std::nanf(""), -10000.0f, -3e38f}) {
    LogProbabilitiesJson json(tokenizer_.get());
    const TokenScores scores{.log_probability = p, .likeliest = {{'b', p}}};
    json.Add('a', &scores, true);
    EXPECT_EQ(json.Take().dump(), R"({"tokens":["a"],"token_logprobs":[-9999.0],)"
                                  R"("top_logprobs":[{"b":-9999.0,"a":-9999.0}],)"
                                  R"("text_offset":[0]})");
  }
}

TEST_F(LogProbabilitiesJsonTest, OffsetsCountCharacters) {
  using Offsets64 = std::vector<int64_t>;
  EXPECT_EQ(Offsets("abc"), (Offsets64{0, 1, 2}));
  EXPECT_EQ(Offsets("\u00e9x"), (Offsets64{0, 0, 1}));
  EXPECT_EQ(Offsets("a\U0001F600b"), (Offsets64{0, 1, 1, 1, 1, 2}));
  // What is no character is U+FFFD in the text.
  EXPECT_EQ(Offsets("\xff\xffx"), (Offsets64{0, 1, 2}));
  EXPECT_EQ(Offsets("\xe2\x80x"), (Offsets64{0, 0, 1}));
  EXPECT_EQ(Offsets("\xe2\xe2\x80\x99x"), (Offsets64{0, 1, 1, 1, 2}));
  EXPECT_EQ(Offsets("\xf0\x80x"), (Offsets64{0, 1, 2}));
}

TEST_F(LogProbabilitiesJsonTest, TheEndOfTextHasAnOffsetAndNoText) {
  LogProbabilitiesJson json(tokenizer_.get());
  json.Add('a', nullptr, true);
  json.Add(256, nullptr, false);
  EXPECT_EQ(json.Take().dump(), R"({"tokens":["a","<|endoftext|>"],"token_logprobs":[null,null],)"
                                R"("top_logprobs":[null,null],"text_offset":[0,1]})");
}

// As the text of a prompt ends: half a character is one, and its second half another.
TEST_F(LogProbabilitiesJsonTest, NoCharacterGoesOnBehindTheEndOfAText) {
  LogProbabilitiesJson json(tokenizer_.get());
  json.Add('a', nullptr, true);
  json.Add(0xC3, nullptr, true);
  json.EndText();
  json.Add(0xA9, nullptr, true);
  json.Add('b', nullptr, true);
  EXPECT_EQ(json.Take()["text_offset"], Json({0, 1, 2, 3}));
}

TEST_F(LogProbabilitiesJsonTest, WithoutTokenizerThereAreNumbersAlone) {
  LogProbabilitiesJson json(nullptr);
  json.Add(7, nullptr, true);
  json.Add(8, nullptr, true);
  EXPECT_EQ(json.Take().dump(), R"({"tokens":["token_id:7","token_id:8"],)"
                                R"("token_logprobs":[null,null],"top_logprobs":[null,null],)"
                                R"("text_offset":[0,0]})");
}

}  // namespace
}  // namespace hippodrome::log_probabilities_json_test
