#include "tools/train/session/training_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "tests/testing/temporary_directory.h"
#include "tests/testing/thread_ranks.h"

namespace hippodrome::training_session_test {
namespace {

TEST(TrainingProgressTest, DescribesThePace) {
  EXPECT_EQ(DescribePace({3.14159, 12345, 0.449}, 3723),
            "loss 3.142, 12.3 k tokens/s, 45 % of the limit, 1:02:03 left");
  EXPECT_EQ(DescribePace({0.5, 950, 0}, 65), "loss 0.500, 950 tokens/s, 1:05 left");
  EXPECT_EQ(DescribePace({0.5, 1.2e6, 0}, -1), "loss 0.500, 1.20 M tokens/s");
}

TEST(TrainingProgressTest, ExpectsTheRestToTakeAsLongPerStep) {
  EXPECT_EQ(SecondsLeft(100, 150, 200, 30), 30);
  EXPECT_EQ(SecondsLeft(0, 50, 200, 5), 15);
  EXPECT_LT(SecondsLeft(100, 100, 200, 5), 0);
}

// Standard error is a file here, not a terminal, and a line comes after a second at the earliest.
TEST(TrainingProgressTest, SaysHowFarItIs) {
  testing::internal::CaptureStderr();
  TrainingProgress progress(100, 200);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  progress.Update(150, {2, 100, 0.5});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("training: 75 %, loss 2.000, 100 tokens/s, 50 % of the limit, "
                                    "[0-9:]+ left\n"));
}

// ---- Early stopping ----------------------------------------------------------------------------

// What is learned is wrong of the validation set, so that each step makes its loss worse.
class EarlyStoppingTest : public testing::Test {
 protected:
  EarlyStoppingTest() {
    directory_.Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nbook\nis\nred\n");
    directory_.Write("train.tsv", "1\tthe book\n1\tred\n1\tthe red book\n1\tis the\n");
    directory_.Write("valid.tsv", "-5\tthe book\n-5\tred book\n");
  }

  TrainingRun Run(const std::string& output, const std::string& more = "") const {
    const auto run = ParseTrainingRun(R"({"output": ")" + output +
                                          R"(", "objective": "regression", "tokenizer": ".",
            "model": {"config": {"model_type": "BiGS", "hidden_size": 8, "num_hidden_layers": 1,
                                 "intermediate_size": 8, "num_ssm": 2, "vocab_size": 9,
                                 "max_position_embeddings": 8}},
            "data": {"train": "train.tsv", "valid": "valid.tsv",
                     "columns": {"label": 0, "text": 1}},
            "length": 8, "batch": 2, "micro_batch": 1, "steps": 20, "optimizer": {"rate": 0.01},
            "threads": 1, "device": "cpu", "checkpoint_every": 1, "evaluate_every": 2,
            "early_stopping": {"patience": 2})" +
                                          more + "}",
                                      directory_.path());
    EXPECT_TRUE(run.ok()) << run.status();
    return *run;
  }
  // Goes on from the last checkpoint, where there is one. Gives where it ended.
  static TrainingPosition Train(const TrainingRun& run, Communicator* ranks = nullptr) {
    const auto session = TrainingSession::Open(run, /*resume=*/true, ranks);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Train().value());
    return (*session)->position();
  }
  std::string Model(const std::string& output) const {
    return FileContent(directory_.File(output + "/model/model.safetensors"));
  }

  // Makes `output` what the run "whole" was after `step`.
  void StopAfter(int64_t step, const std::string& output) const {
    const std::string folder = directory_.File(output);
    std::filesystem::copy(directory_.File("whole"), folder,
                          std::filesystem::copy_options::recursive);
    std::filesystem::remove_all(folder + "/model");
    for (int64_t later = step + 1; later <= 6; ++later) {
      std::filesystem::remove_all(folder + "/checkpoints/step-" + std::to_string(later));
    }
  }

  const TemporaryDirectory directory_;
};

TEST_F(EarlyStoppingTest, EndsAfterEvaluationsThatAreNoBetterAndKeepsTheBest) {
  testing::internal::CaptureStderr();
  const TrainingPosition end = Train(Run("out"));
  EXPECT_EQ(end.step, 6);
  EXPECT_EQ(end.best->step, 2);
  EXPECT_EQ(end.best->evaluations_since, 2);
  EXPECT_LT(end.best->figure, 0);
  // The schedule is constant, so that nothing depends on how long a run was meant to be.
  TrainingRun until_best = Run("short");
  until_best.steps = 2;
  Train(until_best);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(Model("out"), Model("short"));
  EXPECT_THAT(FileContent(directory_.File("out/model/README.md")),
              testing::AllOf(testing::HasSubstr("| steps | 6 |"),
                             testing::HasSubstr("| the model is of step | 2,")));
}

TEST_F(EarlyStoppingTest, GoesOnWithTheSameBits) {
  testing::internal::CaptureStderr();
  Train(Run("whole"));
  StopAfter(5, "resumed");
  EXPECT_EQ(Train(Run("resumed")).step, 6);
  EXPECT_EQ(Model("resumed"), Model("whole"));
  StopAfter(6, "ended");  // before its model was written
  EXPECT_EQ(Train(Run("ended")).step, 6);
  EXPECT_EQ(Model("ended"), Model("whole"));
  testing::internal::GetCapturedStderr();
}

TEST_F(EarlyStoppingTest, RanksComeToTheSameBits) {
  testing::internal::CaptureStderr();
  Train(Run("whole"));
  StopAfter(5, "resumed");
  for (const std::string output : {"ranks", "resumed"}) {
    RunRanks(2, [&](Communicator& ranks) {
      const TrainingPosition end = Train(Run(output, R"(, "shard_optimizer": true)"), &ranks);
      EXPECT_EQ(end.step, 6);
      EXPECT_EQ(end.best->step, 2);
    });
    EXPECT_EQ(Model(output), Model("whole")) << output;
  }
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace hippodrome::training_session_test
