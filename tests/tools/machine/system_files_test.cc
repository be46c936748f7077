#include "tools/machine/system_files.h"

#include <gtest/gtest.h>

#include "tests/tools/machine/system_tree.h"

namespace hippodrome::system_files_test {
namespace {

TEST(SystemFilesTest, AFileLosesTheSpaceAtItsEnds) {
  const SystemTree tree;
  tree.Write("/proc/one", "\n a b \n\n");
  EXPECT_EQ(ReadSystemFile(tree.root(), "/proc/one"), "a b");
  EXPECT_EQ(ReadSystemFile(tree.root(), "/proc/two"), "");
  EXPECT_EQ(ReadSystemFile(tree.root(), "/proc"), "");  // a folder
}

TEST(SystemFilesTest, AFieldIsTheFirstOfItsName) {
  const std::string text = "model name : a: b\nmodel\t: 3\nempty:\nmodel : 4\nno colon";
  EXPECT_EQ(SystemField(text, "model"), "3");
  EXPECT_EQ(SystemField(text, "model name"), "a: b");
  EXPECT_EQ(SystemField(text, "empty"), "");
  EXPECT_EQ(SystemField(text, "no colon"), "");
  EXPECT_EQ(SystemField("", "model"), "");
}

TEST(SystemFilesTest, SizesHaveUnits) {
  EXPECT_EQ(ParseSystemSize("7"), 7);
  EXPECT_EQ(ParseSystemSize("32K"), 32 << 10);
  EXPECT_EQ(ParseSystemSize("24684092 kB"), int64_t{24684092} << 10);
  EXPECT_EQ(ParseSystemSize("320M"), 320 << 20);
  for (const char* wrong : {"", "K", "-1 kB", "1 x", "9223372036854775807 kB"}) {
    EXPECT_EQ(ParseSystemSize(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace hippodrome::system_files_test
