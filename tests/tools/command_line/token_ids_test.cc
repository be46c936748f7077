#include "tools/command_line/token_ids.h"

#include <gtest/gtest.h>

namespace hippodrome::token_ids_test {
namespace {

TEST(TokenIdsTest, ReadsLists) {
  EXPECT_EQ(*ParseTokenIds("1,2,3"), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(*ParseTokenIds(" 7 , 2147483647"), (std::vector<int32_t>{7, 2147483647}));
  EXPECT_TRUE(ParseTokenIds("")->empty());
}

TEST(TokenIdsTest, RefusesAnythingElse) {
  for (const char* bad : {"a", "1,,2", "1 2", "-1", "2147483648", "1.5", ","}) {
    EXPECT_FALSE(ParseTokenIds(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace hippodrome::token_ids_test
