#include "tools/evaluate/python_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hippodrome::python_text_test {
namespace {

using testing::ElementsAre;

TEST(PythonTextTest, CharactersGoBothWays) {
  EXPECT_EQ(ToCodePoints("a\u00e9\U0001f600"), U"a\u00e9\U0001f600");
  EXPECT_EQ(ToUtf8(U"a\u00e9\U0001f600"), "a\u00e9\U0001f600");
  EXPECT_EQ(ToCodePoints("a\xff\xc3z"), U"az");
}

TEST(PythonTextTest, SpacesAreThoseOfUnicode) {
  EXPECT_EQ(PythonTrim(U"\u00a0\n a b\u3000\x1c"), U"a b");
  EXPECT_THAT(PythonWords(U" a\u2003b\n\nc "), ElementsAre(U"a", U"b", U"c"));
  EXPECT_FALSE(IsPythonSpace(U'\u200b'));
}

TEST(PythonTextTest, CasesAreThoseOfCharacters) {
  EXPECT_EQ(PythonLower(U"\u00c9T\u00c9 1"), U"\u00e9t\u00e9 1");
  EXPECT_EQ(PythonCapitalize(U"\u00e9T\u00c9 A"), U"\u00c9t\u00e9 a");
  EXPECT_EQ(PythonCapitalize(U""), U"");
  EXPECT_EQ(PythonCapitalize(U"\u01c6x"), U"\u01c5x");  // a title case of its own
}

TEST(PythonTextTest, PunctuationIsThatOfAscii) {
  EXPECT_TRUE(IsAsciiPunctuation(U'~'));
  EXPECT_FALSE(IsAsciiPunctuation(U'a'));
  EXPECT_FALSE(IsAsciiPunctuation(U'\u2014'));
}

}  // namespace
}  // namespace hippodrome::python_text_test
