#include "tools/train/checkpoint/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/train/saved_states.h"

namespace hippodrome::training_state_test {
namespace {

namespace fs = std::filesystem;

class TrainingStateTest : public testing::Test {
 protected:
  void Save(int64_t step) {
    const absl::Status saved = SaveStep(output_, step);
    ASSERT_TRUE(saved.ok()) << saved;
  }

  std::string FileOf(int64_t step, const std::string& name) const {
    return output_ + "/checkpoints/step-" + std::to_string(step) + "/" + name;
  }

  // Inverts a bit of byte `place` of the file, counted from the end where negative.
  static void Damage(const std::string& path, int64_t place) {
    std::string bytes = FileContent(path);
    bytes[place < 0 ? bytes.size() + place : place] ^= 1;
    std::ofstream(path, std::ios::binary) << bytes;
  }

  absl::StatusOr<LoadedTrainingState> Load() { return LoadLatestState(output_, SomeArrays()); }

  // Expects the checkpoint of step 1, and a warning about that of step 2.
  void ExpectFallback(const std::string& warning) {
    const auto state = Load();
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->position.step, 1);
    EXPECT_TRUE(HasValuesOfItsStep(*state));
    EXPECT_THAT(state->warnings, testing::ElementsAre(testing::HasSubstr(warning)));
  }

  TemporaryDirectory directory_;
  std::string output_ = directory_.File("out");
};

TEST_F(TrainingStateTest, GivesBackWhatWasSaved) {
  Save(7);
  const auto state = Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->position.step, 7);
  EXPECT_EQ(state->position.tokens, 70);
  EXPECT_EQ(state->position.batch, 8);
  EXPECT_EQ(state->position.seconds, 3.5);
  EXPECT_EQ(state->position.fingerprint, "f00d");
  EXPECT_TRUE(HasValuesOfItsStep(*state));
  EXPECT_TRUE(state->warnings.empty());
}

TEST_F(TrainingStateTest, KeepsTheLastTwo) {
  for (const int64_t step : {8, 9, 10, 11}) Save(step);
  EXPECT_EQ(Load()->position.step, 11);
  EXPECT_TRUE(fs::exists(FileOf(10, "state.json")));
  EXPECT_EQ(std::distance(fs::directory_iterator(output_ + "/checkpoints"), {}), 2);
}

TEST_F(TrainingStateTest, NothingToResumeFromIsNotFound) {
  EXPECT_EQ(Load().status().code(), absl::StatusCode::kNotFound);
  fs::create_directories(output_ + "/checkpoints/step-3.tmp");
  EXPECT_EQ(Load().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TrainingStateTest, FallsBackFromEveryDamagedByteOfTheArrays) {
  Save(1);
  Save(2);
  const std::string path = FileOf(2, "state.safetensors");
  const auto size = static_cast<int64_t>(fs::file_size(path));
  const std::string whole = FileContent(path);
  for (int64_t place = 0; place < size; ++place) {
    Damage(path, place);
    const auto state = Load();
    ASSERT_TRUE(state.ok()) << state.status();
    // A few bits of the header carry nothing, such as the letters of a number's white space.
    EXPECT_TRUE(HasValuesOfItsStep(*state)) << place;
    EXPECT_EQ(state->position.step, 2 - static_cast<int64_t>(state->warnings.size())) << place;
    const bool in_values = place >= size - 31 * 4;
    EXPECT_TRUE(!in_values || state->position.step == 1) << place;
    std::ofstream(path, std::ios::binary) << whole;
  }
}

TEST_F(TrainingStateTest, FallsBackFromEveryDamagedByteOfThePosition) {
  Save(1);
  Save(2);
  const std::string path = FileOf(2, "state.json");
  const std::string whole = FileContent(path);
  for (size_t place = 0; place < whole.size(); ++place) {
    Damage(path, static_cast<int64_t>(place));
    const auto state = Load();
    ASSERT_TRUE(state.ok()) << state.status();
    // White space between members may change.
    EXPECT_TRUE(whole[place] == ' ' || whole[place] == '\n' || state->position.step == 1) << place;
    EXPECT_TRUE(HasValuesOfItsStep(*state));
    std::ofstream(path, std::ios::binary) << whole;
  }
}

TEST_F(TrainingStateTest, FallsBackFromFilesThatAreCutOffOrMissing) {
  for (const char* name : {"state.safetensors", "state.json"}) {
    fs::remove_all(output_);
    Save(1);
    Save(2);
    const std::string path = FileOf(2, name);
    fs::resize_file(path, fs::file_size(path) - 1);
    ExpectFallback(path);
    fs::resize_file(path, 0);
    ExpectFallback(path);
    fs::remove(path);
    ExpectFallback(path);
  }
}

TEST_F(TrainingStateTest, ACheckpointUnderTheNameOfAnotherStepIsDamaged) {
  Save(1);
  fs::rename(output_ + "/checkpoints/step-1", output_ + "/checkpoints/step-2");
  Save(2);  // replaces it
  EXPECT_EQ(Load()->position.step, 2);
  fs::rename(output_ + "/checkpoints/step-2", output_ + "/checkpoints/step-9");
  EXPECT_THAT(Message(Load().status()),
              testing::HasSubstr("step is 2, expected an integer in [9, 9]"));
}

TEST_F(TrainingStateTest, TrainingAgainFromAnOlderOneRemovesTheNewer) {
  Save(1);
  Save(2);
  Damage(FileOf(2, "state.safetensors"), -1);
  Save(2);
  EXPECT_EQ(Load()->position.step, 2);
  Save(3);
  Save(1);
  EXPECT_EQ(Load()->position.step, 1);
}

TEST_F(TrainingStateTest, WithoutAnyWholeOneTheReasonsAreTold) {
  Save(1);
  Save(2);
  for (const int64_t step : {1, 2}) Damage(FileOf(step, "state.safetensors"), -1);
  const absl::Status status = Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), testing::StartsWith("no checkpoint is whole: "));
  EXPECT_THAT(Message(status), testing::HasSubstr("step-1/state.safetensors: damaged"));
  EXPECT_THAT(Message(status), testing::HasSubstr("step-2/state.safetensors: damaged"));
}

TEST_F(TrainingStateTest, AnotherModelIsAnErrorAndNoReasonToFallBack) {
  Save(1);
  Save(2);
  std::vector<TrainingArray> arrays = SomeArrays();
  arrays[0].shape = {5, 3};
  EXPECT_THAT(Message(LoadLatestState(output_, arrays).status()),
              testing::EndsWith("step-2/state.safetensors: parameter/w is [3, 5], expected [5, 3] "
                                "for this run"));
  arrays = SomeArrays();
  arrays.push_back({"average/w", {3, 5}});
  EXPECT_THAT(Message(LoadLatestState(output_, arrays).status()),
              testing::HasSubstr("average/w is missing"));
  arrays = SomeArrays();
  arrays.pop_back();
  EXPECT_THAT(Message(LoadLatestState(output_, arrays).status()),
              testing::HasSubstr("holds 3 arrays, expected 2"));
}

TEST_F(TrainingStateTest, AnErrorWhileSavingLeavesWhatWasThere) {
  Save(1);
  const auto fails = [](size_t) -> absl::StatusOr<std::span<const float>> {
    return Internal("the device is gone");
  };
  EXPECT_EQ(Message(SaveTrainingState(output_, {.step = 2}, SomeArrays(), fails)),
            "the device is gone");
  const auto short_of_values = [](size_t) -> absl::StatusOr<std::span<const float>> {
    return std::span<const float>();
  };
  EXPECT_THAT(Message(SaveTrainingState(output_, {.step = 2}, SomeArrays(), short_of_values)),
              testing::HasSubstr("parameter/w has a size other than its shape"));
  EXPECT_EQ(Load()->position.step, 1);
}

TEST_F(TrainingStateTest, ErrorsOfTheSystemNameThePath) {
  directory_.Write("out", "a file");
  EXPECT_THAT(Message(SaveStep(output_, 1)), testing::StartsWith(output_ + "/checkpoints: "));
}

}  // namespace
}  // namespace hippodrome::training_state_test
