// The commands as they are called, up to where they measure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/commands/commands.h"

namespace hippodrome::bench_command_test {
namespace {

using testing::HasSubstr;

// What `bench compare` says, which must be a usage error.
std::string Refusal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"bench", "compare"});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStderr();
  EXPECT_EQ(BenchCommand(static_cast<int>(argv.size()), argv.data()), 2);
  return testing::internal::GetCapturedStderr();
}

TEST(BenchCommandTest, CompareTakesADecoderOrAnEncoder) {
  EXPECT_THAT(Refusal({}), HasSubstr("give either --preset or --config"));
  EXPECT_THAT(Refusal({"--preset", "gpt-2"}), HasSubstr("--preset is 'gpt-2', expected h3-125m,"));
  EXPECT_THAT(Refusal({"--preset", "gpt-2"}), HasSubstr("bigs-4096"));
}

TEST(BenchCommandTest, CompareRefusesTheOptionsOfTheOtherFamily) {
  EXPECT_THAT(Refusal({"--preset", "h3-125m", "--length", "5"}),
              HasSubstr("--length is of encoders, expected --prompt"));
  EXPECT_THAT(Refusal({"--preset", "bigs-128", "--prompt", "5"}),
              HasSubstr("--prompt is of language models, expected --length"));
}

TEST(BenchCommandTest, CompareTakesTypesOfWeights) {
  const auto refusal = [](const std::string& types) {
    return Refusal({"--preset", "h3-125m", "--weights", types});
  };
  EXPECT_THAT(refusal("bf16,int5"), HasSubstr("--weights has 'int5', expected types of f32, bf16"));
  EXPECT_THAT(refusal("bf16,f32,bf16"), HasSubstr("--weights has 'bf16' twice"));
  EXPECT_THAT(refusal(""), HasSubstr("--weights is empty, expected types of f32, bf16"));
  EXPECT_THAT(refusal("bf16,,f32"), HasSubstr("--weights has '', expected types of f32, bf16"));
}

TEST(BenchCommandTest, CompareRefusesSizesBeyondTheirRanges) {
  EXPECT_THAT(Refusal({"--preset", "h3-125m", "--batch", "0"}),
              HasSubstr("--batch is '0', expected numbers in [1, 4096]"));
  EXPECT_THAT(Refusal({"--preset", "h3-125m", "--batch", ""}), HasSubstr("--batch is ''"));
  EXPECT_THAT(Refusal({"--preset", "h3-125m", "--batch", "1,x"}),
              HasSubstr("--batch is '1,x', expected numbers in [1, 4096]"));
  EXPECT_THAT(Refusal({"--preset", "bigs-128", "--length", "129"}),
              HasSubstr("--length is '129', expected numbers in [1, 128]"));
  EXPECT_THAT(Refusal({"--preset", "h3-125m", "--repeats", "0"}), HasSubstr("--repeats is '0'"));
}

}  // namespace
}  // namespace hippodrome::bench_command_test
