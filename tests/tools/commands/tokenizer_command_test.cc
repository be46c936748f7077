// The command as it is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/tokenizer/bpe.h"
#include "tests/testing/temporary_directory.h"
#include "tools/commands/commands.h"
#include "tools/train/data/tokenized_text.h"

namespace hippodrome::tokenizer_command_test {
namespace {

using testing::HasSubstr;

class TokenizerCommandTest : public testing::Test {
 protected:
  TokenizerCommandTest() {
    std::string text;
    for (int i = 0; i < 300; ++i) text += "The horses ran again. They ran and ran.\n";
    input_ = directory_.Write("text", text + "<|endoftext|>" + text);
  }

  // The exit code; what is said on stderr is in error_.
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "tokenizer");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = TokenizerCommand(static_cast<int>(argv.size()), argv.data());
    error_ = testing::internal::GetCapturedStderr();
    testing::internal::GetCapturedStdout();
    return code;
  }
  // Trains in `out` and encodes the input with it.
  TokenizedText TrainAndEncode(const std::string& kind, const std::string& vocab) {
    const std::string out = directory_.File(kind);
    EXPECT_EQ(Run({"train", "--kind", kind, "--vocab", vocab, "--input", input_, "--out", out}), 0)
        << error_;
    const std::string tokens = directory_.File(kind + ".safetensors");
    EXPECT_EQ(Run({"encode", "--tokenizer", out, "--input", input_, "--output", tokens, "--threads",
                   "1"}),
              0)
        << error_;
    auto text = ReadTokenFiles({tokens});
    EXPECT_TRUE(text.ok()) << text.status();
    return *std::move(text);
  }

  TemporaryDirectory directory_;
  std::string input_;
  std::string error_;
};

TEST_F(TokenizerCommandTest, BytePairs) {
  const TokenizedText text = TrainAndEncode("bpe", "270");
  EXPECT_EQ(text.kind, TokenizerKind::kBpe);
  EXPECT_EQ(text.vocab_size, 270);
  const auto tokenizer = *BpeTokenizer::Read(directory_.File("bpe"));
  EXPECT_EQ(tokenizer->Decode(text.tokens), FileContent(input_) + "<|endoftext|>");
}

TEST_F(TokenizerCommandTest, WordPiece) {
  const TokenizedText text = TrainAndEncode("wordpiece", "35");
  EXPECT_EQ(text.kind, TokenizerKind::kWordPiece);
  EXPECT_EQ(text.vocab_size, 35);
  EXPECT_EQ(text.document_ends.size(), 2U);
  EXPECT_EQ(text.sentence_ends.size(), 2U * 2 * 300);
}

TEST_F(TokenizerCommandTest, SaysWhatIsWrong) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(Run({"learn"}), 2);
  EXPECT_THAT(error_, HasSubstr("unknown command 'learn'"));
  const std::string out = directory_.File("out");
  EXPECT_EQ(Run({"train", "--kind", "t5", "--vocab", "300", "--input", input_, "--out", out}), 2);
  EXPECT_THAT(error_, HasSubstr("expected bpe or wordpiece"));
  EXPECT_EQ(Run({"train", "--kind", "bpe", "--vocab", "300", "--out", out}), 2);
  EXPECT_EQ(Run({"train", "--kind", "bpe", "--input", input_, "--out", out}), 2);
  EXPECT_EQ(Run({"train", "--kind", "bpe", "--vocab", "9999", "--input", input_, "--out", out}), 1);
  EXPECT_THAT(error_, HasSubstr("the text gives only"));
  EXPECT_EQ(Run({"encode", "--tokenizer", out, "--input", input_, "--output", out}), 1);
  EXPECT_EQ(Run({"encode", "--tokenizer", out, "--output", out}), 2);
}

}  // namespace
}  // namespace hippodrome::tokenizer_command_test
