#include "tools/mpi/open_communicator.h"

#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::open_communicator_test {
namespace {

TEST(OpenCommunicatorTest, AProcessThatWasStartedAloneHasNone) {
  const auto ranks = OpenCommunicator();
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(*ranks, nullptr);
  EXPECT_TRUE(absl::IsNotFound(RunOnRanks(nullptr, [](Communicator* all) {
    EXPECT_EQ(all, nullptr);
    return NotFound("nothing");
  })));
}

}  // namespace
}  // namespace hippodrome::open_communicator_test
