// What tasks ask of documents in their published form, and in that of the Hugging Face hub.
#include "tools/evaluate/lm/lm_question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hippodrome::lm_question_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

LmTask Task(const std::string& name) { return FindLmTask(name).value(); }

std::vector<NumberedDocument> Prepared(const std::string& task, const json& document) {
  const auto documents = PrepareDocuments(Task(task), {{1, document}});
  EXPECT_TRUE(documents.ok()) << documents.status();
  return documents.value_or(std::vector<NumberedDocument>());
}

LmQuestion Ask(const std::string& task, const json& document,
               const std::vector<std::string>& examples = {}) {
  const auto question = AskQuestion(Task(task), Prepared(task, document).at(0), examples);
  EXPECT_TRUE(question.ok()) << question.status();
  return question.value_or(LmQuestion());
}

const json kCopa = {{"premise", "It rained. "},
                    {"choice1", "We left."},
                    {"choice2", "He sang."},
                    {"question", "effect"},
                    {"label", 1}};

TEST(LmQuestionTest, ChoicesContinueTheContext) {
  const LmQuestion question = Ask("copa", kCopa);
  ASSERT_EQ(question.scored.size(), 2);
  EXPECT_EQ(question.scored[0].context, "It rained therefore");
  EXPECT_EQ(question.scored[0].continuation, "  we left.");
  EXPECT_EQ(question.scored[1].continuation, "  he sang.");
  EXPECT_EQ(question.choices[1], " he sang.");
  EXPECT_EQ(question.gold, 1);
}

TEST(LmQuestionTest, ExamplesComeFirst) {
  EXPECT_EQ(*ExampleText(Task("copa"), Prepared("copa", kCopa).at(0)),
            "It rained therefore  he sang.");
  EXPECT_EQ(Ask("copa", kCopa, {"One.", "Two."}).scored[0].context,
            "One.\n\nTwo.\n\nIt rained therefore");
}

TEST(LmQuestionTest, ContextsMayDifferInstead) {
  const json document = {{"sentence", "Ann saw Eve, so _ waved to her."},
                         {"option1", "Ann"},
                         {"option2", "Eve"},
                         {"answer", "2"}};
  const LmQuestion question = Ask("winogrande", document, {"One."});
  ASSERT_EQ(question.scored.size(), 2);
  EXPECT_EQ(question.scored[1].context, "One.\n\nAnn saw Eve, so Eve");
  EXPECT_EQ(question.scored[1].continuation, " waved to her.");
  EXPECT_EQ(question.gold, 1);
}

TEST(LmQuestionTest, DocumentsUnfold) {
  const json published = {
      {"passage",
       {{"text", "A story."},
        {"questions",
         {{{"question", "Who?"},
           {"answers", {{{"text", "Ann"}, {"label", 1}}, {{"text", "Eve"}, {"label", 0}}}}},
          {{"question", "When?"}, {"answers", {{{"text", "Now"}, {"label", 0}}}}}}}}}};
  const auto documents = Prepared("multirc", published);
  ASSERT_EQ(documents.size(), 3);
  const auto second = AskQuestion(Task("multirc"), documents[1], {});
  EXPECT_EQ(second->scored[0].context, "A story.\nQuestion: Who?\nAnswer:");
  EXPECT_EQ(second->scored[0].continuation, " Eve\nIs the answer correct? yes");
  EXPECT_EQ(second->gold, 0);
  const LmQuestion flat =
      Ask("multirc",
          {{"paragraph", "A story."}, {"question", "Who?"}, {"answer", "Eve"}, {"label", 0}});
  EXPECT_EQ(flat.scored[0].context, second->scored[0].context);
  EXPECT_EQ(flat.scored[1].continuation, second->scored[1].continuation);
}

TEST(LmQuestionTest, NamesAreComparedWithAnswers) {
  const std::string text = "Ann met Eve.\n@highlight\nThey talked\n@highlight\nLong";
  const json published = {
      {"passage",
       {{"text", text}, {"entities", {{{"start", 8}, {"end", 10}}, {{"start", 0}, {"end", 2}}}}}},
      {"qas",
       {{{"query", "@placeholder was there"},
         {"answers", {{{"text", "Eve"}}, {{"text", "Eve"}}}}}}}};
  const json hub = {{"passage", text},
                    {"query", "@placeholder was there"},
                    {"entities", {"Eve", "Ann", "Eve"}},
                    {"answers", {"Eve", "Eve"}}};
  for (const json& document : {published, hub}) {
    const LmQuestion question = Ask("record", document);
    EXPECT_EQ(question.scored[0].context, "Ann met Eve.\n\n  - They talked.\n  - Long.\n");
    EXPECT_THAT(question.choices, ElementsAre("  - Ann was there", "  - Eve was there"));
    EXPECT_THAT(question.names, ElementsAre("Ann", "Eve"));
    EXPECT_THAT(question.answers, ElementsAre("Eve"));
  }
  EXPECT_THAT(*ExampleText(Task("record"), Prepared("record", hub).at(0)),
              HasSubstr("Long.\n   - Eve was there"));
}

TEST(LmQuestionTest, PronounsAreMarked) {
  const json target = {{"span1_text", "Ann"}, {"span2_text", "she"}, {"span2_index", 4}};
  const std::string text = "Ann said that , she did n't know .";
  json hub = target;
  hub["text"] = text;
  hub["label"] = 1;
  for (const json& document : {json({{"text", text}, {"target", target}, {"label", true}}), hub}) {
    EXPECT_THAT(Ask("wsc", document).scored[0].context,
                HasSubstr("Passage: Ann said that, *she* didn't know.\nQuestion: In the passage "
                          "above, does the pronoun \"*she*\" refer to \"*Ann*\"?\nAnswer:"));
  }
}

TEST(LmQuestionTest, TextsOfWikiTextLoseTheirMarks) {
  const json page = {{"page", " = A = \n \n It 's 1 @,@ 000 well @-@ known ( b ) \" c \" . \n"}};
  const LmQuestion question = Ask("wikitext", page);
  EXPECT_EQ(question.scored[0].context, "");
  EXPECT_EQ(question.scored[0].continuation, " = A =\n\nIt's 1,000 well-known (b) \"c\".\n");
  EXPECT_EQ(question.words, 20);
  EXPECT_EQ(question.bytes, 57);
}

TEST(LmQuestionTest, WordsAreThoseBetweenSpaces) {
  EXPECT_EQ(Ask("texts", {{"text", "a b\n c"}}).words, 3);
  EXPECT_EQ(Ask("texts", {{"text", " a "}}).words, 3);
  EXPECT_EQ(Ask("texts", {{"text", "a\u00a0b\u3000c"}}).words, 3);
}

TEST(LmQuestionTest, UnconditionalChoicesAreAskedWhereTheyCount) {
  const auto task = ParseLmTask(
      R"({"name": "t", "kind": "choices", "context": "a", "choices": ["b", "c"], "gold": 0, "metrics": ["acc_mutual_info"]})");
  const auto question = AskQuestion(*task, {1, json::object()}, {});
  ASSERT_EQ(question->scored.size(), 4);
  EXPECT_EQ(question->scored[2].context, "");
  EXPECT_EQ(question->scored[3].continuation, " c");
}

TEST(LmQuestionTest, ErrorsNameTheLineAndTheMember) {
  const auto error = [](const std::string& task, json document) {
    return std::string(AskQuestion(Task(task), {3, std::move(document)}, {}).status().message());
  };
  EXPECT_THAT(error("rte", {{"premise", "a"}}), HasSubstr("line 3: \"context\" of the task: "));
  EXPECT_THAT(error("rte", {{"premise", "a"}, {"hypothesis", "b"}, {"label", "maybe"}}),
              HasSubstr("\"gold\" of the task: \"maybe\": expected one of"));
  EXPECT_THAT(error("choices", {{"context", "a"}, {"choices", {"b"}}, {"gold", 1}}),
              HasSubstr("\"gold\" of the task: it is 1, expected the place of one of 1 choices"));
  EXPECT_THAT(error("choices", {{"context", "a"}, {"choices", json::array()}, {"gold", 0}}),
              HasSubstr("\"choices\" of the task: there are none"));
  const auto unfolded = PrepareDocuments(Task("multirc"), {{5, {{"passage", {{"questions", 3}}}}}});
  EXPECT_THAT(std::string(unfolded.status().message()),
              HasSubstr("line 5: \"unfold\" of the task"));
}

}  // namespace
}  // namespace hippodrome::lm_question_test
