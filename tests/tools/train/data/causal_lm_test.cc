#include "tools/train/data/causal_lm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "engine/base/status.h"

namespace hippodrome::causal_lm_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int32_t> Counting(int64_t size) {
  std::vector<int32_t> tokens(size);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// For every size and length: labels are the successors of ids, no window overlaps another one of
// its epoch, and all are in the text.
TEST(CausalLmTest, WindowsPartTheText) {
  for (int64_t size = 2; size < 30; ++size) {
    for (int64_t length = 1; length < size; ++length) {
      const auto data = MakeCausalLm(Counting(size), length, {.batch_size = 1, .seed = 3});
      ASSERT_TRUE(data.ok()) << data.status();
      const int64_t batches = (*data)->batches();
      for (int64_t epoch = 0; epoch < 4; ++epoch) {
        std::set<int32_t> seen;
        for (int64_t i = 0; i < batches; ++i) {
          const TrainingBatch batch = (*data)->Batch(epoch * batches + i);
          for (int64_t t = 0; t < length; ++t) {
            ASSERT_EQ(batch.labels[t], batch.ids[t] + 1);
            ASSERT_LT(batch.labels[t], size);
            ASSERT_TRUE(seen.insert(batch.ids[t]).second);
          }
        }
        // Less than two windows are left out.
        EXPECT_GT(std::ssize(seen), size - 1 - 2 * length);
      }
    }
  }
}

TEST(CausalLmTest, EpochsBeginAtEveryOffset) {
  const auto data = MakeCausalLm(Counting(50), 5, {.batch_size = 9, .seed = 1});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->batches(), 1);
  std::set<int32_t> offsets;
  for (int64_t epoch = 0; epoch < 100; ++epoch) {
    const TrainingBatch batch = (*data)->Batch(epoch);
    EXPECT_EQ(batch.sequences, 9);
    EXPECT_EQ(batch.length, 5);
    EXPECT_EQ(batch.ids, (*data)->Batch(epoch).ids);
    offsets.insert(batch.ids[0] % 5);
  }
  EXPECT_THAT(offsets, ElementsAre(0, 1, 2, 3, 4));
}

TEST(CausalLmTest, EvaluationReadsFromTheFirstTokenOn) {
  const auto data = MakeCausalLm(Counting(12), 3, {.batch_size = 2, .evaluation = true});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->batches(), 2);
  EXPECT_THAT((*data)->Batch(0).ids, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT((*data)->Batch(1).labels, ElementsAre(7, 8, 9));
  EXPECT_EQ((*data)->Batch(1).sequences, 1);
  EXPECT_TRUE((*data)->Batch(0).mask.empty());
}

TEST(CausalLmTest, RefusesTooFewTokens) {
  EXPECT_THAT(Message(MakeCausalLm(Counting(4), 4, {}).status()), HasSubstr("expected 1 to 3"));
  EXPECT_FALSE(MakeCausalLm(Counting(4), 0, {}).ok());
  EXPECT_FALSE(MakeCausalLm({}, 1, {}).ok());
  EXPECT_THAT(Message(MakeCausalLm(Counting(40), 4, {.batch_size = 10}).status()),
              HasSubstr("9 example(s), too few for a batch of 10"));
}

}  // namespace
}  // namespace hippodrome::causal_lm_test
