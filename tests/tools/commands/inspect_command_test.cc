// The command as it is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/commands/commands.h"

namespace hippodrome::inspect_command_test {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code;
  std::string out, error;
};

Outcome Inspect(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "inspect");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = InspectCommand(static_cast<int>(argv.size()), argv.data());
  const std::string error = testing::internal::GetCapturedStderr();
  return {code, testing::internal::GetCapturedStdout(), error};
}

TEST(InspectCommandTest, TheMachineNeedsNoModel) {
  const Outcome outcome = Inspect({"--machine"});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  for (const char* label : {"processor", "instruction set", "cpus allowed", "NUMA", "cache",
                            "memory", "transparent huge pages", "in huge pages"}) {
    EXPECT_THAT(outcome.out, HasSubstr(label));
  }
}

TEST(InspectCommandTest, TheMachineStandsAlone) {
  Outcome outcome = Inspect({"--machine", "models"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.error, HasSubstr("--machine takes no DIR or FILE, got 'models'"));
  outcome = Inspect({"--machine", "--flops"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.error, HasSubstr("--machine does not go with --flops"));
}

}  // namespace
}  // namespace hippodrome::inspect_command_test
