#include "tools/command_line/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hippodrome::help_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(HelpTest, HasOneStyle) {
  const CommandSpec spec = {
      .name = "group ride",
      .summary = "Rides a horse.",
      .usage = {"HORSE --far N [OPTION]..."},
      .description =
          "A first paragraph, which is longer than a line of the help, so that it is "
          "filled.\nA second one.",
      .arguments = {{"HORSE", "which one"}},
      .options = {{"far", "N", "kilometres", "7"},
                  {"over-hedges", "high|low",
                   "with jumps; there are none where this is not given, so "
                   "that beginners stay on"},
                  {"alone", "", "without others"},
                  {"colour", "black|bay|chestnut|grey|white", "of the horse", "bay"}}};
  EXPECT_EQ(HelpText(spec), R"(Rides a horse.

Usage:
  hippodrome group ride HORSE --far N [OPTION]...

A first paragraph, which is longer than a line of the help, so that it is
filled.

A second one.

Arguments:
  HORSE  which one

Options:
  --far N                 kilometres (default: 7)
  --over-hedges high|low  with jumps; there are none where this is not given, so
                          that beginners stay on
  --alone                 without others
  --colour NAME           of the horse, one of: black, bay, chestnut, grey,
                          white (default: bay)
  -h, --help              print this help and exit

Exit status:
  0  success
  1  failure: standard error says what, where, and what was expected
  2  wrong usage
)");
}

TEST(HelpTest, LongLabelsAndFormsTakeLinesOfTheirOwn) {
  EXPECT_EQ(HelpSection("Commands", {{"a-very-long-label|of-two-names", "both"}, {"short", "one"}}),
            "\nCommands:\n  a-very-long-label|of-two-names\n         both\n  short  one\n");
  EXPECT_THAT(HelpTitle("S.", {std::string(40, 'a') + " " + std::string(40, 'b')}, ""),
              HasSubstr("\n  aaaa"));
  EXPECT_THAT(HelpTitle("S.", {std::string(40, 'a') + " " + std::string(40, 'b')}, ""),
              HasSubstr("\n      bbbb"));
  EXPECT_EQ(HelpSection("Arguments", {}), "");
}

TEST(HelpTest, ListsOfWords) {
  EXPECT_THAT(Alternatives("N|max|none"), ElementsAre("N", "max", "none"));
  EXPECT_THAT(Alternatives("FILE"), ElementsAre("FILE"));
  EXPECT_EQ(CommaList(std::vector<int64_t>{1, 32}), "1,32");
}

}  // namespace
}  // namespace hippodrome::help_test
