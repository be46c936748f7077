#include "server/http/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/base/field_error.h"

namespace hippodrome::query_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(QueryTest, GivesValuesByName) {
  EXPECT_THAT(*ParseQuery(""), IsEmpty());
  EXPECT_THAT(
      *ParseQuery("limit=5&after=a%26b+c&x&y="),
      ElementsAre(Pair("after", "a&b c"), Pair("limit", "5"), Pair("x", ""), Pair("y", "")));
}

TEST(QueryTest, RefusesWhatIsBrokenOrThereTwice) {
  EXPECT_FALSE(ParseQuery("a=%4").ok());
  EXPECT_FALSE(ParseQuery("%zz=1").ok());
  EXPECT_EQ(Field(ParseQuery("a=1&a=1").status()), "a");
}

TEST(QueryTest, DecodesPercent) {
  EXPECT_EQ(DecodePercent("a%2Fb+%00"), std::string("a/b+\0", 5));
  EXPECT_EQ(DecodePercent("%"), std::nullopt);
}

}  // namespace
}  // namespace hippodrome::query_test
