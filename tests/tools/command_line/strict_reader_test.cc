#include "tools/command_line/strict_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::strict_reader_test {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(StrictReaderTest, AMemberThatNobodyAskedForIsAnError) {
  const Json object = {{"steps", 3}, {"stpes", 4}};
  StrictReader reader(object, "run.");
  EXPECT_EQ(reader.Integer("steps", {1, 10}), 3);
  EXPECT_FALSE(reader.Boolean("header", false));
  EXPECT_EQ(Message(reader.Finish()), "run.stpes is unknown here, expected one of header, steps");
}

TEST(StrictReaderTest, NumbersHaveTheirRanges) {
  const Json object = {{"rate", 0.5}, {"zero", 0}, {"one", 1}, {"word", "x"}};
  const auto error = [&](auto&& read) {
    StrictReader reader(object, "");
    read(reader);
    return Message(reader.status());
  };
  StrictReader reader(object, "");
  EXPECT_EQ(reader.Positive("rate", 1), 0.5);
  EXPECT_EQ(reader.NotNegative("zero", 1, 7), 0);
  EXPECT_EQ(reader.NotNegative("absent", 1, 7), 7);
  EXPECT_EQ(reader.BelowOne("zero", 0.5), 0);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_EQ(error([](StrictReader& r) { r.Positive("absent", 2); }),
            "absent is missing, expected a number in (0, 2]");
  EXPECT_EQ(error([](StrictReader& r) { r.BelowOne("one", 0); }),
            "one is 1, expected a number in [0, 1)");
  EXPECT_EQ(error([](StrictReader& r) { r.NotNegative("word", 2, 0); }),
            "word is \"x\", expected a number in [0, 2]");
}

TEST(StrictReaderTest, OneTextOrSeveral) {
  const Json object = {{"one", "a"}, {"two", {"a", "b"}}, {"empty", ""}, {"none", Json::array()}};
  StrictReader reader(object, "");
  EXPECT_THAT(reader.TextOrTexts("one"), ElementsAre("a"));
  EXPECT_THAT(reader.TextOrTexts("two"), ElementsAre("a", "b"));
  EXPECT_THAT(reader.TextOrTexts("absent"), IsEmpty());
  EXPECT_THAT(reader.Texts("none").value(), IsEmpty());
  EXPECT_EQ(reader.Texts("absent"), std::nullopt);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_THAT(reader.TextOrTexts("empty"), IsEmpty());
  EXPECT_EQ(Message(reader.Finish()), "empty is \"\", expected a string or an array of strings");
}

}  // namespace
}  // namespace hippodrome::strict_reader_test
