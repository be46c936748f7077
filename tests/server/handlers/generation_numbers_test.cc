#include "server/handlers/generation_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <string>

#include "engine/base/field_error.h"
#include "server/options.h"

namespace hippodrome::generation_numbers_test {
namespace {

using testing::HasSubstr;

// The comments of the fields of a message, before them and behind them, by name.
std::map<std::string, std::string> FieldComments(const std::string& path,
                                                 const std::string& message) {
  std::ifstream file(path);
  std::map<std::string, std::string> comments;
  std::string line, before;
  while (std::getline(file, line) && line != "message " + message + " {") continue;
  const std::regex field(R"(^ +[\w<>, ]+ (\w+) = \d+;(.*)$)");
  while (std::getline(file, line) && line != "}") {
    std::smatch match;
    if (std::regex_match(line, match, field)) {
      comments[match[1]] = before + match[2].str();
      before.clear();
    } else {
      before += line;
    }
  }
  return comments;
}

TEST(GenerationNumbersTest, TheCommentsOfTheProtocolStateTheSameRanges) {
  const auto comments = FieldComments("proto/hippodrome/v1/generation.proto", "GenerateRequest");
  const auto check = [&](const ParameterRange& range) {
    ASSERT_TRUE(comments.contains(range.name)) << range.name;
    const std::string& comment = comments.at(range.name);
    EXPECT_THAT(comment, HasSubstr(ToString(range))) << range.name;
    if (!range.usual) return;
    std::smatch match;
    ASSERT_TRUE(std::regex_search(comment, match, std::regex(R"(default (\d+))"))) << comment;
    EXPECT_EQ(std::stod(match[1]), *range.usual) << range.name;
  };
  for (const GenerationNumber& number : kGenerationNumbers) check(*number.range);
  check(kLogitBiasRange);
  check(kLogProbabilitiesRange);
  const RequestLimits limits;
  EXPECT_THAT(comments.at("stop"),
              HasSubstr("at most " + std::to_string(limits.max_stops) + ", each of 1 to " +
                        std::to_string(limits.max_stop_bytes) + " bytes"));
  EXPECT_EQ(limits.max_logit_bias, 1024);
  EXPECT_THAT(comments.at("logit_bias"), HasSubstr("at most 1,024"));
}

// Every name with the same value.
struct Constant {
  absl::StatusOr<std::optional<int64_t>> Integer(const std::string&) const { return integer; }
  absl::StatusOr<std::optional<double>> Number(const std::string&) const { return number; }

  std::optional<int64_t> integer;
  std::optional<double> number;
};

TEST(GenerationNumbersTest, AllAreReadAndSet) {
  v1::GenerateRequest request;
  ASSERT_TRUE(ReadGenerationNumbers(Constant{}, request).ok());
  EXPECT_EQ(request.ByteSizeLong(), 0u);
  ASSERT_TRUE(ReadGenerationNumbers(Constant{7, 0.5}, request).ok());
  EXPECT_EQ(request.max_tokens(), 7);
  EXPECT_EQ(request.top_k(), 7);
  for (const float value :
       {request.temperature(), request.top_p(), request.min_p(), request.typical_p(),
        request.repetition_penalty(), request.presence_penalty(), request.frequency_penalty()}) {
    EXPECT_EQ(value, 0.5f);
  }
}

TEST(GenerationNumbersTest, WhatIsBeyondARangeIsNamed) {
  v1::GenerateRequest request;
  EXPECT_EQ(Field(ReadGenerationNumbers(Constant{-1, std::nullopt}, request)), "max_tokens");
  EXPECT_EQ(Field(ReadGenerationNumbers(Constant{std::nullopt, 1e300}, request)), "temperature");
}

}  // namespace
}  // namespace hippodrome::generation_numbers_test
