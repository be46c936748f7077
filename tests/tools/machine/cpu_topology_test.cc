#include "tools/machine/cpu_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "tests/tools/machine/system_tree.h"

namespace hippodrome::cpu_topology_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuListTest, IsAsLinuxWritesIt) {
  EXPECT_EQ(ParseCpuList("0-3,8-11"), (CpuList{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(ParseCpuList("5"), CpuList{5});
  EXPECT_EQ(ParseCpuList("5-5,7"), (CpuList{5, 7}));
  EXPECT_EQ(ParseCpuList(""), CpuList());
  for (const char* wrong : {"5-2", "a", "1,", ",1", "1,,2", "1-", "-1", "1-2-3", "1 2", "3,1",
                            "1,1", "0-3,2", "0-999999999", "99999999999999999999", "0x1"}) {
    EXPECT_EQ(ParseCpuList(wrong), std::nullopt) << wrong;
  }
  for (const char* text : {"", "0", "0-3,8-11", "0-1,3,5-6"}) {
    EXPECT_EQ(CpuListText(*ParseCpuList(text)), text);
  }
}

TEST(CpuTopologyTest, TwoNodesWithSiblingsAndAnOfflineCpu) {
  const SystemTree tree;
  WriteTwoNodes(tree);
  const CpuTopology topology = ReadCpuTopology(tree.root());
  EXPECT_EQ(CpuListText(topology.present), "0-7");
  EXPECT_EQ(CpuListText(topology.online), "0-6");
  EXPECT_EQ(CpuListText(topology.allowed), "0,2-6");
  // 5 is without 1, which is not allowed, and 3 without 7, which is offline.
  EXPECT_THAT(topology.cores, ElementsAre(CpuList{0, 4}, CpuList{2, 6}, CpuList{3}, CpuList{5}));
  ASSERT_EQ(topology.nodes.size(), 2u);
  EXPECT_EQ(topology.nodes[0].id, 0);
  EXPECT_EQ(CpuListText(topology.nodes[0].cpus), "0-1,4-5");
  EXPECT_EQ(topology.nodes[0].memory_bytes, 16 << 20);
  EXPECT_EQ(topology.nodes[1].id, 1);
  EXPECT_EQ(CpuListText(topology.nodes[1].cpus), "2-3,6");
}

TEST(CpuTopologyTest, WhatIsMissingIsUnknown) {
  const SystemTree tree;
  CpuTopology topology = ReadCpuTopology(tree.root());
  EXPECT_THAT(topology.present, IsEmpty());
  EXPECT_THAT(topology.allowed, IsEmpty());
  EXPECT_THAT(topology.cores, IsEmpty());
  EXPECT_THAT(topology.nodes, IsEmpty());
  // Without an affinity, what is online; without siblings, each on a core.
  tree.Write("/sys/devices/system/cpu/online", "0-1");
  tree.Write("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "7-0");
  tree.Write("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1");
  tree.Write("/sys/devices/system/node/online", "0,2");
  tree.Write("/sys/devices/system/node/node2/cpulist", "a");
  topology = ReadCpuTopology(tree.root());
  EXPECT_THAT(topology.allowed, ElementsAre(0, 1));
  EXPECT_THAT(topology.cores, ElementsAre(CpuList{0}, CpuList{1}));
  ASSERT_EQ(topology.nodes.size(), 2u);
  EXPECT_EQ(topology.nodes[1].id, 2);
  EXPECT_THAT(topology.nodes[1].cpus, IsEmpty());
  EXPECT_EQ(topology.nodes[1].memory_bytes, std::nullopt);
}

TEST(CpuTopologyTest, OfThisMachineItAllowsWhatTheSystemDoes) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  const CpuTopology topology = ReadCpuTopology();
  if (topology.allowed.empty()) GTEST_SKIP() << "neither /proc nor /sys";
  EXPECT_EQ(static_cast<int>(topology.allowed.size()), CPU_COUNT(&set));
  for (const int cpu : topology.allowed) EXPECT_TRUE(CPU_ISSET(cpu, &set)) << cpu;
}

TEST(ProcessorNameTest, IsThatOfTheFirst) {
  const SystemTree tree;
  WriteTwoNodes(tree);
  const ProcessorName name = ReadProcessorName(tree.root());
  EXPECT_EQ(name.name, "Intel(R) Xeon(R): 8480");
  EXPECT_EQ(name.vendor, "GenuineIntel");
  EXPECT_EQ(name.family, "6");
  EXPECT_EQ(name.model, "143");
  EXPECT_EQ(ReadProcessorName(tree.root() + "/none").name, "");
}

TEST(CpuCachesTest, AreThoseOfOneCpu) {
  const SystemTree tree;
  WriteTwoNodes(tree);
  const std::vector<CpuCache> caches = ReadCpuCaches(0, tree.root());
  ASSERT_EQ(caches.size(), 4u);
  EXPECT_EQ(caches[0].name, "L1d");
  EXPECT_EQ(caches[0].bytes, 48 << 10);
  EXPECT_THAT(caches[0].shared_by, ElementsAre(0, 4));
  EXPECT_EQ(caches[1].name, "L1i");
  EXPECT_EQ(caches[3].name, "L3");
  EXPECT_EQ(caches[3].bytes, 320 << 20);
  EXPECT_THAT(ReadCpuCaches(1, tree.root()), IsEmpty());
  // One whose size is not told is left out.
  tree.Write("/sys/devices/system/cpu/cpu0/cache/index1/size", "many");
  EXPECT_EQ(ReadCpuCaches(0, tree.root()).size(), 3u);
}

}  // namespace
}  // namespace hippodrome::cpu_topology_test
