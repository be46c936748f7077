#include "tools/evaluate/lm/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hippodrome::documents_test {
namespace {

using testing::HasSubstr;

std::string Error(const std::string& text) {
  return std::string(ReadDocuments(text, DocumentForm::kJson).status().message());
}

TEST(DocumentsTest, JsonIsLinesOrAnArray) {
  const auto lines = ReadDocuments("{\"a\": 1}\n\n {\"a\": 2}", DocumentForm::kJson);
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 2);
  EXPECT_EQ(lines->at(1).document["a"], 2);
  EXPECT_EQ(lines->at(1).line, 3);
  const auto array = ReadDocuments("\n[{\"a\": 1},\n{\"a\": 2}]\n", DocumentForm::kJson);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->at(1).document["a"], 2);
}

TEST(DocumentsTest, TextIsCutAtLinesThatEndOne) {
  const auto texts =
      ReadDocuments("one\ntwo\n<|endoftext|>\n\n<|endoftext|>\nthree", DocumentForm::kText);
  ASSERT_TRUE(texts.ok()) << texts.status();
  ASSERT_EQ(texts->size(), 2);
  EXPECT_EQ(texts->at(0).document["text"], "one\ntwo\n");
  EXPECT_EQ(texts->at(1).document["text"], "three");
  EXPECT_EQ(texts->at(1).line, 6);
}

TEST(DocumentsTest, WikiTextIsCutAtHeadingsOfPages) {
  const auto pages = ReadDocuments(" \n = One = \n text \n = = Part = = \n more \n = Two = \n",
                                   DocumentForm::kWikiText);
  ASSERT_TRUE(pages.ok()) << pages.status();
  ASSERT_EQ(pages->size(), 2);
  EXPECT_EQ(pages->at(0).document["page"], " = One = \n text \n = = Part = = \n more \n");
  EXPECT_EQ(pages->at(0).line, 2);
  EXPECT_EQ(pages->at(1).document["page"], " = Two = \n");
}

TEST(DocumentsTest, ErrorsNameTheLine) {
  EXPECT_THAT(Error("{}\n{\"a\": }\n"), HasSubstr("line 2: not JSON"));
  EXPECT_THAT(Error("{}\n3\n"), HasSubstr("line 2: expected a JSON object"));
  EXPECT_THAT(Error("[{}, 3]"), HasSubstr("element 1: expected an object"));
  EXPECT_THAT(Error("[{}], \"b\": 1"), HasSubstr("behind the array"));
  EXPECT_THAT(Error("[{}"), HasSubstr("not JSON"));
  EXPECT_THAT(Error("\n"), HasSubstr("no documents"));
  EXPECT_THAT(Error("[]"), HasSubstr("no documents"));
}

}  // namespace
}  // namespace hippodrome::documents_test
