#include "tools/machine/system_memory.h"

#include <gtest/gtest.h>

#include "tests/tools/machine/system_tree.h"

namespace hippodrome::system_memory_test {
namespace {

TEST(SystemMemoryTest, TotalAndAvailable) {
  const SystemTree tree;
  EXPECT_EQ(ReadSystemMemory(tree.root()).total_bytes, std::nullopt);
  WriteTwoNodes(tree);
  const SystemMemory memory = ReadSystemMemory(tree.root());
  EXPECT_EQ(memory.total_bytes, 24 << 20);
  EXPECT_EQ(memory.available_bytes, 12 << 20);
}

TEST(SystemMemoryTest, TheModeIsTheWordInBrackets) {
  const SystemTree tree;
  const std::string file = "/sys/kernel/mm/transparent_hugepage/enabled";
  EXPECT_EQ(ReadHugePageMode(tree.root()), "");
  tree.Write(file, "always [madvise] never\n");
  EXPECT_EQ(ReadHugePageMode(tree.root()), "madvise");
  tree.Write(file, "[always] madvise never\n");
  EXPECT_EQ(ReadHugePageMode(tree.root()), "always");
  for (const char* wrong : {"always", "]never[", "[never", ""}) {
    tree.Write(file, wrong);
    EXPECT_EQ(ReadHugePageMode(tree.root()), "") << wrong;
  }
}

TEST(SystemMemoryTest, HugePagesAreThoseOfTheBlocksMappings) {
  const SystemTree tree;
  tree.Write("/proc/self/smaps",
             "00100000-00500000 rw-p 00000000 00:00 0\n"
             "Size:               4096 kB\n"
             "AnonHugePages:      2048 kB\n"
             "VmFlags: rd wr mr mw me ac hg\n"
             "00500000-00700000 rw-p 00000000 00:00 0 [heap]\n"
             "AnonHugePages:      2048 kB\n"
             "7f0000000000-7f0000400000 rw-p 00000000 00:00 0\n"
             "AnonHugePages:         0 kB\n");
  const auto huge = [&](uintptr_t start, size_t bytes) {
    return BytesInHugePages(reinterpret_cast<const void*>(start), bytes, tree.root());
  };
  EXPECT_EQ(huge(0x100000, 0x400000), 2 << 20);
  EXPECT_EQ(huge(0x100000, 0x600000), 4 << 20);
  EXPECT_EQ(huge(0x4ff000, 0x2000), 0x2000);  // not more than the block has
  EXPECT_EQ(huge(0x7f0000000000, 0x1000), 0);
  EXPECT_EQ(huge(0x700000, 0x1000), std::nullopt);
  tree.Remove("/proc");
  EXPECT_EQ(huge(0x100000, 0x400000), std::nullopt);
}

}  // namespace
}  // namespace hippodrome::system_memory_test
