// Ends the process before every operation on the file system, one after the other, by standing in
// for the functions of the C library that change it.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/testing/temporary_directory.h"
#include "tests/tools/train/saved_states.h"
#include "tools/train/checkpoint/training_state.h"

namespace {

constexpr int kKilled = 9;

int operations_left = -1;  // until the end; -1: never

void CountOperation() {
  if (operations_left == 0) _exit(kKilled);
  if (operations_left > 0) --operations_left;
}

// What the C library has under the name.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int fsync(int descriptor) {
  CountOperation();
  return Next<int(int)>("fsync")(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  CountOperation();
  return Next<int(const char*, const char*)>("rename")(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  CountOperation();
  return Next<int(const char*, mode_t)>("mkdir")(path, mode);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  CountOperation();
  return Next<int(int, const char*, int)>("unlinkat")(folder, path, flags);
}

int fclose(FILE* file) {
  CountOperation();
  return Next<int(FILE*)>("fclose")(file);
}

FILE* fopen(const char* path, const char* mode) {
  CountOperation();
  return Next<FILE*(const char*, const char*)>("fopen")(path, mode);
}

}  // extern "C"

namespace hippodrome::training_state_crash_test {
namespace {

// Saves `step` in a process of its own that ends before operation `operations`; whether it ended
// so.
bool SaveAndBeKilled(const std::string& output, int64_t step, int operations) {
  const pid_t child = fork();
  if (child == 0) {
    operations_left = operations;
    _exit(SaveStep(output, step).ok() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_NE(WEXITSTATUS(status), 1);
  return WEXITSTATUS(status) == kKilled;
}

// Expects a whole checkpoint of one of two steps, and no damaged one before it; gives its step.
int64_t ExpectWhole(const std::string& output, int64_t before, int64_t after, int operations) {
  const auto state = LoadLatestState(output, SomeArrays());
  EXPECT_TRUE(state.ok()) << "after " << operations << " operations: " << state.status();
  if (!state.ok()) return -1;
  const int64_t step = state->position.step;
  EXPECT_TRUE(step == before || step == after) << step << " after " << operations;
  EXPECT_TRUE(state->warnings.empty()) << "after " << operations;
  EXPECT_TRUE(HasValuesOfItsStep(*state)) << "after " << operations;
  return step;
}

TEST(TrainingStateCrashTest, LeavesTheCheckpointBeforeOrThisOne) {
  int operations = 0;
  int saved = 0;
  for (bool killed = true; killed; ++operations) {
    const TemporaryDirectory directory;
    for (const int64_t step : {1, 2, 3}) ASSERT_TRUE(SaveStep(directory.path(), step).ok());
    killed = SaveAndBeKilled(directory.path(), 4, operations);
    const int64_t step = ExpectWhole(directory.path(), 3, 4, operations);
    if (step == 4) ++saved;
    EXPECT_TRUE(killed || step == 4);
    // What lies about hinders no one, and is cleared away.
    ASSERT_TRUE(SaveStep(directory.path(), 5).ok());
    EXPECT_EQ(ExpectWhole(directory.path(), 5, 5, operations), 5);
    const std::filesystem::directory_iterator left(directory.path() + "/checkpoints");
    EXPECT_EQ(std::distance(left, {}), 2) << "after " << operations;
  }
  // The stand-ins were reached: folders, two files, their syncs and renames, and the removal.
  EXPECT_GT(operations, 15);
  EXPECT_GT(saved, 3);
}

TEST(TrainingStateCrashTest, TheFirstCheckpointIsWholeOrNotThere) {
  int operations = 0;
  for (bool killed = true; killed; ++operations) {
    const TemporaryDirectory directory;
    killed = SaveAndBeKilled(directory.path(), 1, operations);
    const auto state = LoadLatestState(directory.path(), SomeArrays());
    if (state.ok()) {
      EXPECT_TRUE(HasValuesOfItsStep(*state));
    } else {
      EXPECT_TRUE(killed);
      EXPECT_EQ(state.status().code(), absl::StatusCode::kNotFound) << state.status();
    }
  }
}

TEST(TrainingStateCrashTest, SoDoesGoingBackToAnOlderOne) {
  int operations = 0;
  for (bool killed = true; killed; ++operations) {
    const TemporaryDirectory directory;
    for (const int64_t step : {4, 8}) ASSERT_TRUE(SaveStep(directory.path(), step).ok());
    killed = SaveAndBeKilled(directory.path(), 6, operations);
    const auto state = LoadLatestState(directory.path(), SomeArrays());
    ASSERT_TRUE(state.ok()) << "after " << operations << " operations: " << state.status();
    EXPECT_TRUE(HasValuesOfItsStep(*state));
    EXPECT_TRUE(killed || state->position.step == 6);
  }
}

}  // namespace
}  // namespace hippodrome::training_state_crash_test
