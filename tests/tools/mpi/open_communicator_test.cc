#include "tools/mpi/open_communicator.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "engine/base/status.h"

namespace hippodrome::open_communicator_test {
namespace {

// One of two, which says nothing to the other.
class LoneRank final : public Communicator {
 public:
  explicit LoneRank(int rank) : rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  std::string host() const override { return "here"; }
  Transfer Send(int, int, std::span<const std::byte>) override { return {}; }
  Transfer Receive(int, int, std::span<std::byte>) override { return {}; }
  bool Done(Transfer) override { return true; }
  [[noreturn]] void Abort(int status) override { std::exit(status); }

 private:
  int rank_;
};

// mpirun ends all when one fails, be it before rank 0 has told why.
TEST(OpenCommunicatorTest, OfAnErrorOfAllRankZeroAloneFails) {
  const auto fail = [](Communicator*) { return NotFound("nothing"); };
  EXPECT_TRUE(absl::IsNotFound(RunOnRanks(std::make_unique<LoneRank>(0), fail)));
  EXPECT_TRUE(RunOnRanks(std::make_unique<LoneRank>(1), fail).ok());
}

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
