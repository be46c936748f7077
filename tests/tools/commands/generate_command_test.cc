// The command as it is called, up to where it reads the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/commands/commands.h"

namespace hippodrome::generate_command_test {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code = 0;
  std::string error;
};

Outcome Generate(const std::string& option, const std::string& value) {
  std::vector<std::string> arguments = {
      "generate", "--model", "/no/such/model", "--prompt-ids", "1", option, value};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStderr();
  const int code = GenerateCommand(static_cast<int>(argv.size()), argv.data());
  return {code, testing::internal::GetCapturedStderr()};
}

TEST(GenerateCommandTest, SamplingOptionsAreRefusedBeyondTheirRanges) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad = {
      {"--temperature", {"-0.001", "100.001", "nan", "inf", "1e300", "warm"}},
      {"--top-k", {"-1", "1073741825", "4294967297", "9223372036854775808", "1.5"}},
      {"--top-p", {"0", "-0", "1.001", "nan", "1e-60"}},
      {"--min-p", {"-0.001", "1.001", "nan"}}};
  for (const auto& [option, values] : bad) {
    for (const std::string& value : values) {
      const Outcome outcome = Generate(option, value);
      EXPECT_EQ(outcome.code, 2) << option << " " << value;
      EXPECT_THAT(outcome.error, HasSubstr(option)) << value;
    }
  }
}

TEST(GenerateCommandTest, TheEndsOfTheRangesAreTaken) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> good = {
      {"--temperature", {"0", "-0", "1e-60", "100"}},
      {"--top-k", {"0", "1073741824"}},
      {"--top-p", {"1e-9", "1e-45", "1"}},
      {"--min-p", {"0", "1"}},
      {"--seed", {"0", "9223372036854775807"}}};
  for (const auto& [option, values] : good) {
    for (const std::string& value : values) {
      const Outcome outcome = Generate(option, value);
      EXPECT_EQ(outcome.code, 1) << option << " " << value;
      EXPECT_THAT(outcome.error, HasSubstr("/no/such/model")) << option << " " << value;
    }
  }
}

}  // namespace
}  // namespace hippodrome::generate_command_test
