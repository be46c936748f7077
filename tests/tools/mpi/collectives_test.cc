#include "tools/mpi/collectives.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "engine/base/status.h"
#include "tests/testing/thread_ranks.h"

namespace hippodrome::collectives_test {
namespace {

TEST(CollectivesTest, BroadcastsFromAnyRank) {
  for (const int count : {1, 2, 5}) {
    RunRanks(count, [&](Communicator& ranks) {
      for (int root = 0; root < count; ++root) {
        std::array<int, 3> values = {};
        if (ranks.rank() == root) values = {root, 7, 9};
        Broadcast(ranks, root, std::as_writable_bytes(std::span(values)));
        EXPECT_EQ(values, (std::array<int, 3>{root, 7, 9}));
      }
    });
  }
}

TEST(CollectivesTest, GathersTextsOfAnyLengthInTheOrderOfRanks) {
  RunRanks(4, [](Communicator& ranks) {
    const std::string text(static_cast<size_t>(ranks.rank() * 5 % 4), 'a');
    EXPECT_EQ(AllGather(ranks, text), (std::vector<std::string>{"", "a", "aa", "aaa"}));
    EXPECT_EQ(AllGather(ranks, ""), std::vector<std::string>(4));
  });
}

TEST(CollectivesTest, AgreesOnTheFirstError) {
  RunRanks(3, [](Communicator& ranks) {
    EXPECT_TRUE(Agree(ranks, absl::OkStatus()).ok());
    const absl::Status status =
        Agree(ranks, ranks.rank() == 0 ? absl::OkStatus()
                                       : NotFound("file " + std::to_string(ranks.rank())));
    EXPECT_TRUE(absl::IsNotFound(status));
    EXPECT_EQ(Message(status), "rank 1 (here): file 1");
  });
}

// A rank that others wait for is named.
TEST(CollectivesTest, ALongWaitIsTold) {
  std::atomic<int> peer = -1;
  RunRanks(2, [&](Communicator& ranks) {
    std::byte byte = {};
    if (ranks.rank() == 0) {
      ranks.OnLongWait([&](int of) { peer = of; });
      Wait(ranks, ranks.Receive(1, 0, {&byte, 1}), 1);
    } else {
      while (peer < 0) std::this_thread::yield();
      Wait(ranks, ranks.Send(0, 0, {&byte, 1}), 0);
    }
  });
  EXPECT_EQ(peer, 1);
}

TEST(CollectivesTest, RanksOfAMachineShareItsProcessors) {
  RunRanks(3, [](Communicator& ranks) {
    const LocalRanks local = FindLocalRanks(ranks);
    EXPECT_EQ(local.index, ranks.rank());
    EXPECT_EQ(local.count, 3);
    EXPECT_GE(local.processors, 1);
  });
}

}  // namespace
}  // namespace hippodrome::collectives_test
