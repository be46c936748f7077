#include "tools/train/step/gradient_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

namespace hippodrome::gradient_tree_test {
namespace {

TEST(GradientTreeTest, SharesAreWholeMicroBatchesAndEverySequenceHasOne) {
  for (const int64_t sequences : {1, 7, 8, 12}) {
    for (size_t count = 1; count <= 5; ++count) {
      int64_t next = 0;
      int64_t fewest = sequences;
      int64_t most = 0;
      for (size_t i = 0; i < count; ++i) {
        const Share share = ShareOf(sequences, 2, i, count);
        EXPECT_EQ(share.begin, next);
        EXPECT_TRUE(share.begin % 2 == 0 || share.begin == sequences);
        next = share.end;
        const int64_t parts = (share.end - share.begin + 1) / 2;
        fewest = std::min(fewest, parts);
        most = std::max(most, parts);
      }
      EXPECT_EQ(next, sequences);
      EXPECT_LE(most - fewest, 1);
    }
  }
}

// Every node has one holder, which learned a part of it, and the root of every second bucket
// another.
TEST(GradientTreeTest, ANodeIsHeldByOneOfThoseWhoLearnedIt) {
  for (const int64_t micro_batches : {1, 2, 5, 8, 13}) {
    for (int ranks = 1; ranks <= micro_batches; ++ranks) {
      const GradientTree tree(micro_batches, ranks);
      for (size_t bucket = 0; bucket < 4; ++bucket) {
        for (TreeNode node = tree.root(); node.level >= 0; --node.level) {
          for (node.index = 0; tree.Exists(node); ++node.index) {
            const Share share = tree.OfRank(tree.Holder(node, bucket));
            EXPECT_LT(share.begin, (node.index + 1) << node.level);
            EXPECT_GT(share.end, node.index << node.level);
          }
          node.index = 0;
        }
      }
    }
  }
}

TEST(GradientTreeTest, BucketsAreSpreadOverRanks) {
  for (const int ranks : {2, 4, 8}) {
    const GradientTree tree(16, ranks);
    std::map<int, int> roots;
    for (size_t bucket = 0; bucket < 64; ++bucket) ++roots[tree.Holder(tree.root(), bucket)];
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(roots[rank], 64 / ranks) << rank;
  }
}

}  // namespace
}  // namespace hippodrome::gradient_tree_test
