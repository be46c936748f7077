#include "server/batching/scheduling.h"

#include <gtest/gtest.h>

#include <vector>

namespace hippodrome::scheduling_test {
namespace {

using std::chrono::microseconds;

constexpr std::chrono::steady_clock::time_point kStart{};
constexpr EncodingPolicy kPolicy{.max_batch_tokens = 64, .max_batch_delay = microseconds(500)};

// Inputs of so many tokens that arrived 1 us after one another.
std::vector<QueuedInput> Queue(const std::vector<int64_t>& tokens) {
  std::vector<QueuedInput> queue;
  for (const int64_t count : tokens) {
    queue.push_back({count, kStart + microseconds(queue.size())});
  }
  return queue;
}

std::vector<size_t> Members(const std::vector<int64_t>& tokens) {
  return ChooseBatch(Queue(tokens), kPolicy).members;
}

// After the oldest arrived.
microseconds Start(const std::vector<int64_t>& tokens) {
  return std::chrono::duration_cast<microseconds>(ChooseBatch(Queue(tokens), kPolicy).start -
                                                  kStart);
}

using Places = std::vector<size_t>;

TEST(EncodingPolicyTest, ALoneInputWaitsForOthers) {
  EXPECT_EQ(Members({10}), (Places{0}));
  EXPECT_EQ(Start({10}), microseconds(500));
}

TEST(EncodingPolicyTest, TheWaitIsThatOfTheOldestWhereverItIsInLine) {
  std::vector<QueuedInput> line = Queue({10, 10});
  std::swap(line[0], line[1]);
  EXPECT_EQ(ChooseBatch(line, kPolicy).start, kStart + microseconds(500));
  EXPECT_EQ(Members({10, 10, 10}), (Places{0, 1, 2}));
  EXPECT_EQ(Start({10, 10, 10}), microseconds(500));
}

TEST(EncodingPolicyTest, AFullBatchStartsAtOnce) {
  EXPECT_EQ(Members({16, 16, 16, 16}), (Places{0, 1, 2, 3}));
  EXPECT_EQ(Start({16, 16, 16, 16}), microseconds(0));
  EXPECT_EQ(Members({16, 16, 16, 16, 16}), (Places{0, 1, 2, 3}));
}

TEST(EncodingPolicyTest, ABatchThatTakesNoOtherOfItsLengthIsFull) {
  EXPECT_EQ(Members({25, 25}), (Places{0, 1}));
  EXPECT_EQ(Start({25, 25}), microseconds(0));
  EXPECT_EQ(Start({25}), microseconds(500));
}

TEST(EncodingPolicyTest, OthersOfTheLengthOfTheFirstJoin) {
  EXPECT_EQ(Members({10, 20, 10, 30, 10}), (Places{0, 2, 4}));
  EXPECT_EQ(Start({10, 20, 10, 30, 10}), microseconds(500));
}

// The first two stand for inputs that somebody waits for, the others for such in the background.
TEST(EncodingPolicyTest, WhoIsBehindFillsWhatIsLeft) {
  EXPECT_EQ(Members({20, 20, 10, 20, 20}), (Places{0, 1, 3}));
  EXPECT_EQ(Members({20, 10, 20, 20, 20}), (Places{0, 2, 3}));
}

TEST(EncodingPolicyTest, AFullBatchBehindTheFirstEndsItsWait) {
  EXPECT_EQ(Members({10, 32, 32}), (Places{0}));
  EXPECT_EQ(Start({10, 32, 32}), microseconds(0));
}

TEST(EncodingPolicyTest, AnInputBeyondTheBudgetRunsAlone) {
  EXPECT_EQ(Members({100, 100}), (Places{0}));
  EXPECT_EQ(Start({100}), microseconds(0));
}

// Whatever arrives, the first is in the next batch, and batches keep the order of each length.
TEST(EncodingPolicyTest, EveryInputRunsOnceAndInTheOrderOfItsLength) {
  std::vector<QueuedInput> queue = Queue({});
  for (int64_t i = 0; i < 1000; ++i) {
    queue.push_back({1 + i * i % 31, kStart + microseconds(i)});
  }
  std::vector<microseconds::rep> last(32, -1);
  size_t batches = 0;
  for (; !queue.empty(); ++batches) {
    const BatchChoice choice = ChooseBatch(queue, kPolicy);
    ASSERT_EQ(choice.members.front(), 0u);
    int64_t tokens = 0;
    for (auto place = choice.members.rbegin(); place != choice.members.rend(); ++place) {
      EXPECT_EQ(queue[*place].tokens, queue[0].tokens);
      tokens += queue[*place].tokens;
    }
    EXPECT_LE(tokens, kPolicy.max_batch_tokens);
    for (const size_t place : choice.members) {
      const auto arrived = (queue[place].arrived - kStart) / microseconds(1);
      EXPECT_GT(arrived, last[queue[place].tokens]);
      last[queue[place].tokens] = arrived;
    }
    for (auto place = choice.members.rbegin(); place != choice.members.rend(); ++place) {
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(*place));
    }
  }
  EXPECT_LT(batches, 500u);
}

}  // namespace
}  // namespace hippodrome::scheduling_test
