#include "tools/batch/run_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/testing/fake_model.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::run_batch_test {
namespace {

using testing::HasSubstr;

// Tasks over the fake encoder, whose outputs tell what it was asked.
class RunBatchTest : public testing::Test {
 protected:
  RunBatchTest() {
    FakeEncoderOptions options;
    options.max_batch_tokens = 24;
    handlers_ = NewHandlers(NewFakeEncoderModel("bigs", options, &engine_));
  }

  std::unique_ptr<Handlers> NewHandlers(ModelParts parts) {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(std::move(parts), metrics_));
    return std::make_unique<Handlers>(std::move(models), RequestLimits());
  }

  absl::StatusOr<BatchCounts> Run(
      const std::string& input, const std::string& output, const BatchWindow& window = {},
      const std::function<bool()>& stopped = [] { return false; }) {
    const auto answerer = LineAnswerer::Make(*handlers_, {.task = BatchTask::kClassify});
    const auto reader = *LineReader::Open(input, 200);
    const auto file = *OpenJsonLines(output);
    auto counts =
        RunBatch(*reader, *answerer, *file, window, stopped, [](const BatchCounts&, int64_t) {});
    EXPECT_TRUE(file->Finish().ok());
    return counts;
  }

  // Texts of many lengths, and lines that are none.
  std::string WriteInput(int lines) const {
    const std::vector<std::string> bad = {"",
                                          "{",
                                          "{\"inputs\": 5}",
                                          "{\"id\": 1}",
                                          "\xff",
                                          "{\"inputs\": \"" + std::string(300, 'a'),
                                          "{\"inputs\":\"" + std::string(60, 'a') + "\"}",
                                          "{\"inputs\":\"a\xc3\"}",
                                          "{\"inputs\":\"a\",\"id\":[1]}",
                                          "[1]"};
    std::string text;
    for (int i = 0; i < lines; ++i) {
      if (i % 9 == 4) {
        text += bad[i / 9 % bad.size()] + "\n";
      } else {
        text += "{\"id\":" + std::to_string(i) + ",\"inputs\":\"" +
                std::string(1 + i * 7 % 23, static_cast<char>('a' + i % 26)) + "\"}\n";
      }
    }
    return folder_.Write("input", text);
  }

  TemporaryDirectory folder_;
  Metrics metrics_;
  FakeEncoder* engine_ = nullptr;
  std::unique_ptr<Handlers> handlers_;
};

TEST_F(RunBatchTest, EveryLineHasItsAnswerWhateverTheWindow) {
  const std::string input = WriteInput(300);
  const auto counts = Run(input, folder_.File("whole"));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->lines, 300);
  EXPECT_EQ(counts->errors, 33);
  const std::string whole = FileContent(folder_.File("whole"));
  EXPECT_THAT(whole, testing::StartsWith("{\"id\":0,\"result\":[{\"label\":"));
  EXPECT_THAT(whole, HasSubstr("\"message\":\"the line is too long\""));
  EXPECT_THAT(whole, HasSubstr("bytes that are not UTF-8"));
  for (const BatchWindow& window :
       {BatchWindow{.lines = 1}, BatchWindow{.lines = 7}, BatchWindow{.bytes = 1}}) {
    ASSERT_TRUE(Run(input, folder_.File("other"), window).ok());
    EXPECT_EQ(FileContent(folder_.File("other")), whole);
    std::filesystem::remove(folder_.File("other"));
  }
}

TEST_F(RunBatchTest, LinesOfALengthRunTogether) {
  std::string text;
  for (int i = 0; i < 24; ++i)
    text += i % 2 == 0 ? "{\"inputs\":\"a\"}\n" : "{\"inputs\":\"abcd\"}\n";
  engine_->hold = true;
  const std::string input = folder_.Write("input", text);
  bool first = true;
  const auto counts = Run(input, folder_.File("out"), {}, [&] {
    engine_->hold = first;  // until the window was filled
    first = false;
    return false;
  });
  ASSERT_TRUE(counts.ok());
  EXPECT_LE(engine_->batches().size(), 9);  // of 12 inputs with 3 tokens, and 12 with 6: 2 and 3
}

TEST_F(RunBatchTest, GoesOnBehindWhatIsThere) {
  const std::string input = WriteInput(100);
  ASSERT_TRUE(Run(input, folder_.File("whole")).ok());
  int looks = 0;  // of a run: one to ask, one to wait, and one to take what came
  for (;;) {
    const auto counts =
        Run(input, folder_.File("parts"), {.lines = 8}, [&] { return ++looks % 4 == 0; });
    ASSERT_TRUE(counts.ok());
    if (counts->lines == 100) break;
  }
  EXPECT_GT(looks, 10);
  EXPECT_EQ(FileContent(folder_.File("parts")), FileContent(folder_.File("whole")));
}

TEST_F(RunBatchTest, AnInputThatHasLessThanTheOutputIsRefused) {
  const std::string output = folder_.Write("out", "{\"result\":1}\n{\"result\":1}\n");
  EXPECT_THAT(Run(folder_.Write("input", "{}\n"), output).status().ToString(),
              HasSubstr("the output has 2 lines, and the input has 1"));
}

TEST_F(RunBatchTest, ValuesThatAreNotNumbersAreTheLinesOwnError) {
  engine_->give_nan = true;
  const auto counts = Run(folder_.Write("input", "{\"inputs\":\"a\"}\n"), folder_.File("out"));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->errors, 1);
  EXPECT_THAT(FileContent(folder_.File("out")), HasSubstr("not numbers"));
}

// Nothing is written that a later run, on a device that works, would not write.
TEST_F(RunBatchTest, ADeviceThatFailsEndsTheJob) {
  const std::string input = WriteInput(100);
  engine_->break_device = true;
  EXPECT_FALSE(Run(input, folder_.File("out")).ok());
  EXPECT_THAT(FileContent(folder_.File("out")), testing::Not(HasSubstr("internal")));
}

TEST_F(RunBatchTest, ModelsThatCannotDoTheTaskAreRefusedAtOnce) {
  const auto make = [&](BatchTask task) {
    return LineAnswerer::Make(*handlers_, {.task = task}).status().ToString();
  };
  EXPECT_THAT(make(BatchTask::kGenerate), HasSubstr("needs a decoder"));
  EXPECT_THAT(make(BatchTask::kTag), HasSubstr("this task needs token_classification"));
  EXPECT_EQ(make(BatchTask::kEmbed), "OK");
  handlers_ = NewHandlers(NewFakeModel("h3"));
  EXPECT_THAT(make(BatchTask::kClassify), HasSubstr("needs an encoder"));
  EXPECT_EQ(make(BatchTask::kScore), "OK");
}

}  // namespace
}  // namespace hippodrome::run_batch_test
