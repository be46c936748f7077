#include "tools/evaluate/lm/lm_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::lm_task_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kChoices[] =
    R"({"name": "t", "kind": "choices", "context": "{c}", "choices": "{x}", "gold": "{g}")";

std::string Error(const std::string& json) {
  return std::string(ParseLmTask(json).status().message());
}

TEST(LmTaskTest, AllThatComeWithTheProgramAreWell) {
  EXPECT_GE(BuiltInLmTasks().size(), 20);
  for (const auto& [name, text] : BuiltInLmTasks()) {
    const auto task = ParseLmTask(std::string(text));
    ASSERT_TRUE(task.ok()) << name << ": " << task.status();
    EXPECT_EQ(task->name, name);
    EXPECT_FALSE(task->title.empty()) << name;
    EXPECT_FALSE(task->data.empty()) << name;
  }
}

TEST(LmTaskTest, HasDefaults) {
  const auto task = ParseLmTask(std::string(kChoices) + "}");
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_EQ(task->delimiter, " ");
  EXPECT_EQ(task->form, DocumentForm::kJson);
  EXPECT_THAT(task->metrics, ElementsAre("acc", "acc_norm", "acc_bytes", "acc_tokens"));
}

TEST(LmTaskTest, ErrorsNameTheMember) {
  const std::string good = kChoices;
  EXPECT_THAT(Error(good + R"(, "tilte": "x"})"), HasSubstr("tilte is unknown here"));
  EXPECT_THAT(Error(good + R"(, "metrics": ["bleu"]})"), HasSubstr("metrics"));
  EXPECT_THAT(Error(good + R"(, "text": "{t}"})"), HasSubstr("text is"));
  EXPECT_THAT(Error(good + R"(, "let": [["a"]]})"),
              HasSubstr("expected a list of [NAME, EXPRESSION]"));
  EXPECT_THAT(Error(R"({"name": "t", "kind": "song"})"),
              HasSubstr("kind is \"song\", expected one of choices"));
  EXPECT_THAT(Error(R"({"name": "t", "kind": "rolling"})"), HasSubstr("text is missing"));
  EXPECT_THAT(Error(R"({"kind": "rolling", "text": "{t}"})"), HasSubstr("name is missing"));
  EXPECT_THAT(
      Error(R"({"name": "t", "kind": "choices", "contexts": "{c}", "choices": "{x}", "gold": 0})"),
      HasSubstr("continuation is missing"));
}

TEST(LmTaskTest, IsFoundByNameOrInAFile) {
  EXPECT_EQ(FindLmTask("copa")->name, "copa");
  EXPECT_TRUE(absl::IsNotFound(FindLmTask("cpoa").status()));
  const TemporaryDirectory directory;
  EXPECT_EQ(FindLmTask(directory.Write("own.json", std::string(kChoices) + "}"))->name, "t");
  const auto broken = FindLmTask(directory.Write("broken.json", "{}"));
  EXPECT_THAT(std::string(broken.status().message()), HasSubstr("broken.json: "));
}

}  // namespace
}  // namespace hippodrome::lm_task_test
