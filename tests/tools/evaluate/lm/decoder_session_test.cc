#include "tools/evaluate/lm/decoder_session.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/passes/forward.h"
#include "kernels/make_backend.h"

namespace hippodrome::decoder_session_test {
namespace {

constexpr char kModel[] = "deploy/models/h3-demo";
constexpr char kContext[] =
    "It was a dark night, and the king of Babylon sat alone in the great hall of his fathers, "
    "where "
    "no lamp burned and no voice was heard but that of the wind, which came from the sea.";

const CommandSpec kSpec = {
    .name = "test",
    .options = {WeightsOption(), DeviceOption(), ThreadsOption(), PinOption(), NumaNodeOption()}};

class DecoderSessionTest : public testing::Test {
 protected:
  static std::unique_ptr<DecoderSession> Open() {
    std::vector<std::string> arguments = {"test", "--device", "cpu", "--threads", "1"};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    const auto line = CommandLine::Parse(static_cast<int>(argv.size()), argv.data(), kSpec);
    return DecoderSession::Open(*line, kModel).value();
  }

  const std::unique_ptr<DecoderSession> session_ = Open();
};

// More choices than run together, of contexts that come again and of one that comes once.
TEST_F(DecoderSessionTest, ScoresHaveTheBitsOfAForward) {
  Joiner joiner = session_->NewJoiner();
  std::vector<std::vector<Continuation>> questions(3);
  const std::string words[] = {" Then", " he rose", ", and all was still", " who",
                               " the sea was dark"};
  for (int i = 0; i < 70; ++i) {
    questions[0].push_back(
        *joiner.Join(std::string(kContext), words[i % 5] + std::string(i / 5, '!')));
  }
  for (const std::string& word : words) {
    questions[1].push_back(*joiner.Join(std::string("The king"), word));
    questions[2].push_back(*joiner.Join(std::string(kContext), word));
  }
  const auto scores = session_->Score(questions);
  ASSERT_TRUE(scores.ok()) << scores.status();
  const auto backend = MakeCpuBackend({.threads = 1});
  const LoadedDecoder loaded = LoadDecoderDirectory(*backend, kModel).value();
  for (size_t q = 0; q < questions.size(); ++q) {
    for (size_t c = 0; c < questions[q].size(); ++c) {
      const Continuation& continuation = questions[q][c];
      const auto expected = ForwardScores(*backend, *loaded.model, continuation.ids, 1);
      double sum = 0;
      bool greedy = true;
      for (size_t i = continuation.begin; i < continuation.ids.size(); ++i) {
        const TokenScores& token = expected->at(i);
        sum += token.log_probability;
        greedy &= token.log_probability == token.likeliest.front().log_probability;
      }
      const ContinuationScore& found = scores->at(q).at(c);
      EXPECT_EQ(found.log_probability, sum) << q << " " << c;
      EXPECT_EQ(found.tokens, std::ssize(continuation.ids) - continuation.begin);
      EXPECT_EQ(found.greedy, greedy);
    }
  }
}

TEST_F(DecoderSessionTest, TextsEndAtTheirStops) {
  const BpeTokenizer& tokenizer = *session_->tokenizer();
  const std::vector<std::vector<int32_t>> prompts(70, tokenizer.Encode(kContext));
  const auto whole = session_->Write(std::span(prompts).first(1), {.until = {}, .max_tokens = 24});
  ASSERT_TRUE(whole.ok()) << whole.status();
  const std::string text = whole->front();
  EXPECT_LE(std::ssize(tokenizer.Encode(text)), 24);
  const std::string stop = text.substr(text.size() / 2, 3);
  const auto cut = session_->Write(prompts, {.until = {"\x01", stop}, .max_tokens = 24});
  ASSERT_EQ(cut->size(), prompts.size());
  for (const std::string& one : *cut) EXPECT_EQ(one, text.substr(0, text.find(stop)));
}

TEST_F(DecoderSessionTest, ChecksTokens) {
  EXPECT_TRUE(session_->Check({.ids = {1, 2}, .begin = 1}).ok());
  EXPECT_FALSE(session_->Check({.ids = {1, 1 << 30}, .begin = 1}).ok());
}

}  // namespace
}  // namespace hippodrome::decoder_session_test
