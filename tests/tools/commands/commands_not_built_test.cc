#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/commands/commands.h"
#include "tools/convert/convert_command.h"
#include "tools/convert/export_command.h"

namespace hippodrome::commands_not_built_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(CommandsNotBuiltTest, EachFailsAndSaysHowToBuildIt) {
  for (const auto command : {BenchCommand, CompareCommand, ConvertCommand, EvalCommand,
                             ExportCommand, FinetuneCommand, ForwardCommand, GradientsCommand,
                             InspectCommand, KernelsCommand, TokenizerCommand, TrainCommand}) {
    char name[] = "convert";
    char* argv[] = {name, nullptr};
    testing::internal::CaptureStderr();
    EXPECT_EQ(command(1, argv), 1);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                AllOf(StartsWith("hippodrome convert: not built yet"), HasSubstr("cmake --build")));
  }
}

}  // namespace
}  // namespace hippodrome::commands_not_built_test
