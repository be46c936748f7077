// The order in which the gradients of a batch's micro-batches are added.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_TREE_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_TREE_H_

#include <compare>
#include <cstddef>
#include <cstdint>

namespace hippodrome {

// Things [begin, end) of a sequence of them.
struct Share {
  int64_t begin = 0;
  int64_t end = 0;
};

// The share of one of `count` in `sequences` sequences: whole micro-batches, as evenly as they can
// be divided, in order.
Share ShareOf(int64_t sequences, int64_t micro_batch, size_t index, size_t count);

// The sum over a part of the micro-batches: [index 2^level, (index + 1) 2^level), as far as there
// are any.
struct TreeNode {
  int level = 0;
  int64_t index = 0;
  auto operator<=>(const TreeNode&) const = default;

  TreeNode parent() const { return {level + 1, index / 2}; }
  TreeNode sibling() const { return {level, index ^ 1}; }
  TreeNode left() const { return {level - 1, index * 2}; }
  TreeNode right() const { return {level - 1, index * 2 + 1}; }
};

// A binary tree over micro-batches: a node is the sum of its two children, or its only child. What
// is added to what is fixed by the number of micro-batches alone, so that the sum has the same
// bits whoever adds (MPI_Allreduce promises no order). Each rank learns a share of the
// micro-batches in order, and adds what it can; a node whose children lie with two ranks goes to
// one of them, of every second bucket to the other, so that all send and add as much.
class GradientTree {
 public:
  GradientTree(int64_t micro_batches, int ranks);

  int64_t micro_batches() const { return micro_batches_; }
  Share OfRank(int rank) const;

  // Of all micro-batches.
  TreeNode root() const { return {levels_, 0}; }
  // Whether it has any micro-batch.
  bool Exists(const TreeNode& node) const { return node.index << node.level < micro_batches_; }
  // Whether one rank learns all that it is the sum of.
  bool IsLocal(const TreeNode& node) const;
  // The rank at which the sum `node` of bucket `bucket` is made.
  int Holder(const TreeNode& node, size_t bucket) const;

 private:
  // The rank that learns it.
  int RankOf(int64_t micro_batch) const;

  int64_t micro_batches_;
  int ranks_;
  int levels_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_TREE_H_
