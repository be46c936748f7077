#include "server/batches/batch_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/field_error.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::batch_input_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string Line(const json& more = json::object(), const json& body = {{"inputs", "a"}}) {
  json line = {{"custom_id", "x"}, {"method", "POST"}, {"url", "/predict"}, {"body", body}};
  line.update(more);
  return line.dump();
}

std::string FieldOf(const std::string& line) {
  const auto parsed = ParseBatchLine(line, "/predict");
  return parsed.ok() ? "taken" : Field(parsed.status());
}

TEST(BatchInputTest, ReadsLines) {
  const auto line = *ParseBatchLine(Line(), "/predict");
  EXPECT_EQ(line.custom_id, "x");
  EXPECT_EQ(line.body, R"({"inputs":"a"})");
  EXPECT_EQ(FieldOf(Line(json::object(), {{"stream", false}})), "taken");
  EXPECT_EQ(FieldOf(Line(json::object(), {{"stream", nullptr}})), "taken");
}

TEST(BatchInputTest, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(FieldOf("{"), "");
  EXPECT_EQ(FieldOf("[]"), "");
  EXPECT_EQ(FieldOf("{}"), "custom_id");
  EXPECT_EQ(FieldOf(Line({{"custom_id", ""}})), "custom_id");
  EXPECT_EQ(FieldOf(Line({{"custom_id", 5}})), "custom_id");
  EXPECT_EQ(FieldOf(Line({{"custom_id", std::string(513, 'x')}})), "custom_id");
  EXPECT_EQ(FieldOf(Line({{"method", "GET"}})), "method");
  EXPECT_EQ(FieldOf(Line({{"url", "/embed"}})), "url");
  EXPECT_EQ(FieldOf(Line({{"body", "text"}})), "body");
  EXPECT_EQ(FieldOf(Line({{"body", nullptr}})), "body");
  EXPECT_EQ(FieldOf(Line({{"more", 1}})), "more");
  EXPECT_EQ(FieldOf(Line(json::object(), {{"stream", true}})), "body.stream");
}

// So that a line that is computed twice has one answer.
TEST(BatchInputTest, CompletionsWithoutASeedGetOneOfTheirBytes) {
  const auto seed = [](const std::string& id, const json& body) {
    const auto line = ParseBatchLine(Line({{"url", "/v1/completions"}, {"custom_id", id}}, body),
                                     "/v1/completions");
    return json::parse(line->body)["seed"];
  };
  EXPECT_EQ(seed("x", {{"seed", 7}}), 7);
  EXPECT_TRUE(seed("x", json::object()).is_number_unsigned());
  EXPECT_EQ(seed("x", json::object()), seed("x", json::object()));
  EXPECT_NE(seed("x", json::object()), seed("y", json::object()));
}

class CheckBatchInputTest : public testing::Test {
 protected:
  BatchInput Check(const std::string& text) {
    return *CheckBatchInput(folder_.Write("input", text), "/predict", 200);
  }

  TemporaryDirectory folder_;
};

TEST_F(CheckBatchInputTest, CountsGoodLines) {
  const BatchInput input = Check(Line() + "\n" + Line({{"custom_id", "y"}}));
  EXPECT_EQ(input.lines, 2);
  EXPECT_TRUE(input.errors.empty());
}

TEST_F(CheckBatchInputTest, SaysWhatIsWrongWithWhichLine) {
  const BatchInput input = Check(Line() + "\n{\n\n" + Line() + "\n" + Line({{"url", "/"}}) + "\n" +
                                 std::string(201, 'x') + "\n");
  ASSERT_EQ(input.errors.size(), 5U);
  const char* codes[] = {"invalid_json_line", "invalid_json_line", "duplicate_custom_id",
                         "invalid_field", "line_too_long"};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(input.errors[i].code, codes[i]);
    EXPECT_EQ(input.errors[i].line, static_cast<int64_t>(i) + 2);
  }
  EXPECT_EQ(input.errors[3].param, "url");
  EXPECT_THAT(input.errors[3].message, HasSubstr("/predict"));
}

TEST_F(CheckBatchInputTest, ErrorsAreBounded) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "{\n";
  EXPECT_EQ(Check(text).errors.size(), 20U);
}

TEST_F(CheckBatchInputTest, EmptyAndEndlessFilesAreRefused) {
  EXPECT_EQ(Check("").errors.front().code, "empty_file");
  std::string text;
  for (int64_t i = 0; i <= kMostBatchLines; ++i) text += "{}\n";
  EXPECT_EQ(Check(text).errors.front().code, "too_many_lines");
  EXPECT_FALSE(CheckBatchInput(folder_.File("none"), "/predict", 200).ok());
}

}  // namespace
}  // namespace hippodrome::batch_input_test
