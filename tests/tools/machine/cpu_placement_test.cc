#include "tools/machine/cpu_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "engine/base/status.h"
#include "tests/tools/machine/system_tree.h"

namespace hippodrome::cpu_placement_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CpuPlacementTest : public testing::Test {
 protected:
  CpuPlacementTest() {
    WriteTwoNodes(tree_);
    topology_ = ReadCpuTopology(tree_.root());
  }
  // Where the threads go.
  std::vector<int> Pinned(const CpuPlacement& placement) const {
    const auto cpus = PlacedCpus(placement, topology_);
    EXPECT_TRUE(cpus.ok()) << cpus.status();
    const auto pinned = PinnedCpus(placement, *cpus, topology_);
    EXPECT_TRUE(pinned.ok()) << pinned.status();
    return *pinned;
  }
  std::string Error(const CpuPlacement& placement) const {
    return Message(PlacedCpus(placement, topology_).status());
  }

  SystemTree tree_;
  CpuTopology topology_;
};

TEST_F(CpuPlacementTest, CoresComeBeforeSiblings) {
  EXPECT_THAT(Pinned({.pin = true}), ElementsAre(0, 2, 3, 5, 4, 6));
  EXPECT_THAT(Pinned({.threads = 3, .pin = true}), ElementsAre(0, 2, 3));
  EXPECT_THAT(Pinned({.threads = 6, .pin = true}), ElementsAre(0, 2, 3, 5, 4, 6));
}

TEST_F(CpuPlacementTest, ANodeHasItsOwn) {
  EXPECT_EQ(*PlacedCpus({.numa_node = 0}, topology_), (CpuList{0, 4, 5}));  // 1 is not allowed
  EXPECT_THAT(Pinned({.pin = true, .numa_node = 0}), ElementsAre(0, 5, 4));
  EXPECT_THAT(Pinned({.pin = true, .numa_node = 1}), ElementsAre(2, 3, 6));
}

TEST_F(CpuPlacementTest, ThreeLevelsOfSiblings) {
  topology_.allowed = {0, 1, 2, 3};
  topology_.cores = {{0, 1, 2}, {3}};
  EXPECT_THAT(Pinned({.pin = true}), ElementsAre(0, 3, 1, 2));
}

TEST_F(CpuPlacementTest, MoreThreadsThanCpusAreAnError) {
  const CpuPlacement placement{.threads = 4, .pin = true, .numa_node = 1};
  const auto cpus = PlacedCpus(placement, topology_);
  EXPECT_EQ(Message(PinnedCpus(placement, *cpus, topology_).status()),
            "--threads is 4 with --pin, expected 3 at most: this process may use cpus 2-3,6");
}

TEST_F(CpuPlacementTest, NodesThatAreNotThereAreErrors) {
  EXPECT_EQ(Error({.numa_node = 2}),
            "--numa-node is 2, expected one of 0 (cpus 0-1,4-5), 1 (cpus 2-3,6)");
  topology_.allowed = {0, 4};
  EXPECT_EQ(Error({.numa_node = 1}),
            "--numa-node is 1, of whose cpus this process may use none, only 0,4; the nodes are 0 "
            "(cpus 0-1,4-5), 1 (cpus 2-3,6)");
  topology_.nodes[1].cpus.clear();  // memory alone
  EXPECT_THAT(Error({.numa_node = 1}), HasSubstr("1 (no cpus)"));
  topology_.nodes.clear();
  EXPECT_EQ(Error({.numa_node = 0}),
            "--numa-node is 0: the system tells of no nodes (/sys/devices/system/node/online)");
  topology_.allowed.clear();
  EXPECT_THAT(Error({.pin = true}), HasSubstr("which cpus there are"));
}

// Of the calling thread.
CpuList Affinity() {
  cpu_set_t set;
  CpuList cpus;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// A thread of its own, for it stays placed.
TEST(PlaceThreadsTest, ANodeOfThisMachine) {
  const CpuTopology topology = ReadCpuTopology();
  if (topology.nodes.empty()) GTEST_SKIP() << "the system tells of no nodes";
  const NumaNode* usable = nullptr;
  for (const NumaNode& node : topology.nodes) {
    if (!CommonCpus(node.cpus, topology.allowed).empty()) usable = &node;
  }
  ASSERT_NE(usable, nullptr);
  const CpuList expected = CommonCpus(usable->cpus, topology.allowed);
  std::thread([&] {
    const auto options = PlaceThreads({.threads = 1, .pin = true, .numa_node = usable->id});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->cores.size(), 1u);
    EXPECT_EQ(Affinity(), expected);
    std::thread([&] { EXPECT_EQ(Affinity(), expected); }).join();
    int policy = 0;
    if (syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) != 0) return;
    EXPECT_THAT(policy, testing::AnyOf(MPOL_PREFERRED, MPOL_DEFAULT));  // containers refuse it
  }).join();
}

TEST(PlaceThreadsTest, WithoutOptionsNothingChanges) {
  const CpuList before = Affinity();
  const auto options = PlaceThreads({.threads = 5});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->threads, 5);
  EXPECT_THAT(options->cores, IsEmpty());
  EXPECT_EQ(Affinity(), before);
}

TEST(PlaceThreadsTest, PinningLeavesTheCallerWhereItIs) {
  const CpuList before = Affinity();
  const auto options = PlaceThreads({.pin = true});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->cores.size(), before.size());
  EXPECT_EQ(Affinity(), before);
}

}  // namespace
}  // namespace hippodrome::cpu_placement_test
