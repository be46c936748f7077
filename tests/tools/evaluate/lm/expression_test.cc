#include "tools/evaluate/lm/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"

namespace hippodrome::expression_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const Document kDocument = {{"name", "Ann"},
                            {"age", 7},
                            {"old", false},
                            {"list", {"b", "a", "b"}},
                            {"text", "  Two  words.\n"},
                            {"parts", {{{"text", "x"}, {"at", 1}}, {{"text", "y"}, {"at", 2}}}}};

json Value(const json& expression) {
  const auto value = Evaluate(expression, kDocument);
  EXPECT_TRUE(value.ok()) << expression << ": " << value.status();
  return value.value_or(json());
}

// `steps`: JSON.
json Steps(const std::string& of, const std::string& steps) {
  return Value({{"of", of}, {"do", json::parse(steps)}});
}

absl::Status Error(const json& expression) { return Evaluate(expression, kDocument).status(); }

TEST(ExpressionTest, PlacesStandForMembers) {
  EXPECT_EQ(Value("{name} is {age}, {old}"), "Ann is 7, false");
  EXPECT_EQ(Value("{{name}} {name}"), "{name} Ann");
  EXPECT_EQ(Value("{age}"), 7);
  EXPECT_EQ(Value("{list}"), json({"b", "a", "b"}));
  EXPECT_EQ(Value("{parts.1.text}{list.0}"), "yb");
  EXPECT_EQ(Value("{parts.*.at}"), json({1, 2}));
  EXPECT_EQ(Value(json({"{name}", 3, true})), json({"Ann", 3, true}));
  EXPECT_EQ(Value({{"any", {"{missing}", "{age}", "{missing}"}}}), 7);
}

TEST(ExpressionTest, StepsOfTexts) {
  EXPECT_EQ(Steps("{text}", R"(["trim"])"), "Two  words.");
  EXPECT_EQ(Steps("{text}", R"(["words"])"), json({"Two", "words."}));
  EXPECT_EQ(Steps("éCOLE Ünd", R"(["lower"])"), "école ünd");
  EXPECT_EQ(Steps("éCOLE ÜND", R"(["capitalize"])"), "École ünd");
  EXPECT_EQ(Steps("ÉCOLE", R"(["lower_first"])"), "éCOLE");
  EXPECT_EQ(Steps("", R"(["lower_first"])"), "");
  EXPECT_EQ(Steps("été", R"(["drop_last"])"), "ét");
  EXPECT_EQ(Steps("", R"(["drop_last"])"), "");
  EXPECT_EQ(Steps("aXbX", R"([["replace", "X", "{name}"]])"), "aAnnbAnn");
  EXPECT_EQ(Steps("a [b c] d", R"([["regex", "\\[.*?\\]", ""]])"), "a  d");
  EXPECT_EQ(Steps("(  a )", R"x([["regex", "\\(\\s*([^)]*?)\\s*\\)", "<\\1>"]])x"), "<a>");
  EXPECT_EQ(Steps("in _ the _", R"([["before", "_"]])"), "in ");
  EXPECT_EQ(Steps("in _ the _", R"([["after", "_"]])"), " the _");
  EXPECT_EQ(Steps("été vu", R"([["slice", 1, "{age}"]])"), "té vu");
  EXPECT_EQ(Steps("été vu", R"([["slice", "4", 99]])"), "vu");
  EXPECT_EQ(Steps("été vu", R"([["slice_through", 0, 2]])"), "été");
  EXPECT_EQ(Steps("été vu", R"([["skip", "ab"]])"), "é vu");
  EXPECT_EQ(Steps("a, b,c", R"([["split", ", "]])"), json({"a", "b,c"}));
}

TEST(ExpressionTest, StepsOfLists) {
  EXPECT_EQ(Steps("{list}", R"(["sort_unique"])"), json({"a", "b"}));
  EXPECT_EQ(Steps("{list}", R"(["first"])"), "b");
  EXPECT_EQ(Steps("{list}", R"(["but_first", "last"])"), "b");
  EXPECT_EQ(Steps("{list}", R"(["but_last"])"), json({"b", "a"}));
  EXPECT_EQ(Steps("{list}", R"([["take", 2]])"), json({"b", "a"}));
  EXPECT_EQ(Steps("{list}", R"([["take", 9]])"), json({"b", "a", "b"}));
  EXPECT_EQ(Steps("{list}", R"([["join", "-"]])"), "b-a-b");
  EXPECT_EQ(Steps("{parts}", R"([["each", "{name}: {item.text}"]])"), json({"Ann: x", "Ann: y"}));
}

TEST(ExpressionTest, StepsOfAnything) {
  EXPECT_EQ(Steps("{age}", R"([["map", {"7": 1, "8": 2}]])"), 1);
  EXPECT_EQ(Steps("{old}", R"([["map", {"false": 0, "true": 1}]])"), 0);
  EXPECT_EQ(Steps("a", R"([["index_in", "{list}"]])"), 1);
}

TEST(ExpressionTest, KindsAreChecked) {
  EXPECT_EQ(*EvaluateInteger("{age}", kDocument), 7);
  EXPECT_EQ(*EvaluateInteger("12", kDocument), 12);
  EXPECT_TRUE(absl::IsInvalidArgument(EvaluateInteger("{name}", kDocument).status()));
  EXPECT_EQ(*EvaluateText("{age}", kDocument), "7");
  EXPECT_TRUE(absl::IsInvalidArgument(EvaluateText("{list}", kDocument).status()));
  EXPECT_EQ(*EvaluateTexts("{list}", kDocument), std::vector<std::string>({"b", "a", "b"}));
  EXPECT_TRUE(absl::IsInvalidArgument(EvaluateTexts("{name}", kDocument).status()));
}

TEST(ExpressionTest, WhatTheDocumentLacksIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Error("{missing}")));
  EXPECT_THAT(std::string(Error("x {parts.7.text}").message()), HasSubstr("\"parts.7.text\""));
  EXPECT_TRUE(absl::IsNotFound(Error("{name.first}")));
  EXPECT_TRUE(absl::IsNotFound(Error("{parts.*.missing}")));
}

TEST(ExpressionTest, WhatIsNoExpressionIsAnError) {
  const json faults[] = {"{name",
                         "name}",
                         nullptr,
                         1.5,
                         json::object({{"of", "a"}}),
                         json::object({{"any", json::array()}})};
  for (const json& fault : faults) EXPECT_TRUE(absl::IsInvalidArgument(Error(fault))) << fault;
  const char* const steps[] = {R"("unknown")",
                               R"(["replace", "a"])",
                               "[]",
                               "3",
                               R"(["regex", "(", ""])",
                               R"(["regex", "a", "\\1"])",
                               R"(["before", "?"])",
                               R"(["take", 1])",
                               R"("first")",
                               R"(["map", {"b": 1}])",
                               R"(["index_in", "{list}"])"};
  for (const std::string step : steps) {
    const json expression = {{"of", "text"}, {"do", json::parse("[" + step + "]")}};
    EXPECT_TRUE(absl::IsInvalidArgument(Error(expression))) << step;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Error(json::parse(R"({"of": "{list}", "do": ["trim"]})"))));
  EXPECT_TRUE(absl::IsInvalidArgument(Error(json::parse(R"({"of": [], "do": ["first"]})"))));
}

}  // namespace
}  // namespace hippodrome::expression_test
