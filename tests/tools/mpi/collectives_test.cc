#include "tools/mpi/collectives.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
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
  RunRanks(2, [](Communicator& ranks) {
    int peer = -1;
    ranks.OnLongWait([&](int of) { peer = of; });
    std::byte byte = {};
    if (ranks.rank() == 0) {
      Wait(ranks, ranks.Receive(1, 0, {&byte, 1}), 1);
      EXPECT_EQ(peer, 1);
      Wait(ranks, ranks.Send(1, 0, {&byte, 1}), 1);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      Wait(ranks, ranks.Send(0, 0, {&byte, 1}), 0);
      Wait(ranks, ranks.Receive(0, 0, {&byte, 1}), 0);
    }
  });
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
