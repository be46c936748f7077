#include "tools/machine/machine_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu_instruction_set.h"
#include "tests/tools/machine/system_tree.h"

namespace hippodrome::machine_text_test {
namespace {

using testing::HasSubstr;

TEST(MachineTextTest, TellsWhatTheSystemTells) {
  const SystemTree tree;
  WriteTwoNodes(tree);
  EXPECT_EQ(MachineText(tree.root()), std::string("processor               Intel(R) Xeon(R): 8480\n"
                                                  "vendor                  GenuineIntel\n"
                                                  "family, model           6, 143\n"
                                                  "instruction set         ") +
                                          CpuInstructionSet() +
                                          "\n"
                                          "cpus present            0-7\n"
                                          "cpus online             0-6\n"
                                          "cpus allowed            0,2-6: 6, on 4 core(s)\n"
                                          "SMT siblings            0,4 2,6\n"
                                          "NUMA node 0             cpus 0-1,4-5, memory 16 MiB\n"
                                          "NUMA node 1             cpus 2-3,6, memory 8 MiB\n"
                                          "L1d cache               48 KiB, of cpus 0,4\n"
                                          "L1i cache               32 KiB, of cpus 0,4\n"
                                          "L2 cache                2 MiB, of cpus 0,4\n"
                                          "L3 cache                320 MiB, of cpus 0-7\n"
                                          "memory                  24 MiB, available 12 MiB\n"
                                          "transparent huge pages  madvise\n"
                                          "in huge pages           unknown of 64 MiB allocated\n");
}

TEST(MachineTextTest, WhatIsMissingIsUnknown) {
  const SystemTree tree;
  const std::string text = MachineText(tree.root());
  for (const char* label : {"processor", "family, model", "cpus present", "cpus allowed",
                            "NUMA nodes", "caches", "memory", "transparent huge pages"}) {
    const size_t at = text.find(std::string("\n") + label);
    const size_t line = at == std::string::npos ? 0 : at + 1;
    EXPECT_THAT(text.substr(line, text.find('\n', line) - line), HasSubstr("unknown")) << label;
  }
}

TEST(MachineTextTest, SaysWhatHelpsWhereTheSystemGivesNoHugePages) {
  const SystemTree tree;
  tree.Write("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  tree.Write("/proc/self/smaps", "0-ffffffffffffffff rw-p\nAnonHugePages: 2048 kB\n");
  const std::string text = MachineText(tree.root());
  EXPECT_THAT(text, HasSubstr("2 MiB of 64 MiB allocated\n"));
  EXPECT_THAT(text, HasSubstr("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"));
  tree.Write("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
  EXPECT_THAT(MachineText(tree.root()), HasSubstr("/proc/sys/vm/compact_memory"));
  tree.Write("/proc/self/status", "THP_enabled:\t0\n");
  EXPECT_THAT(MachineText(tree.root()), HasSubstr("PR_SET_THP_DISABLE"));
  tree.Write("/proc/self/smaps", "0-ffffffffffffffff rw-p\nAnonHugePages: 65536 kB\n");
  const std::string all = MachineText(tree.root());
  EXPECT_THAT(all, HasSubstr("64 MiB of 64 MiB allocated\n"));
  EXPECT_THAT(all, testing::Not(HasSubstr("echo")));
}

}  // namespace
}  // namespace hippodrome::machine_text_test
