#include "tools/train/step/gradient_tree.h"

#include <algorithm>

namespace hippodrome {

Share ShareOf(int64_t sequences, int64_t micro_batch, size_t index, size_t count) {
  const int64_t parts = (sequences + micro_batch - 1) / micro_batch;
  const auto border = [&](size_t i) {
    const int64_t part = parts * static_cast<int64_t>(i) / static_cast<int64_t>(count);
    return std::min(part * micro_batch, sequences);
  };
  return {border(index), border(index + 1)};
}

GradientTree::GradientTree(int64_t micro_batches, int ranks)
    : micro_batches_(micro_batches), ranks_(ranks) {
  while (int64_t{1} << levels_ < micro_batches) ++levels_;
}

Share GradientTree::OfRank(int rank) const {
  return ShareOf(micro_batches_, 1, static_cast<size_t>(rank), static_cast<size_t>(ranks_));
}

int GradientTree::RankOf(int64_t micro_batch) const {
  int rank = 0;
  while (OfRank(rank).end <= micro_batch) ++rank;
  return rank;
}

bool GradientTree::IsLocal(const TreeNode& node) const {
  const int64_t begin = node.index << node.level;
  const int64_t end = std::min(begin + (int64_t{1} << node.level), micro_batches_);
  return end <= OfRank(RankOf(begin)).end;
}

int GradientTree::Holder(const TreeNode& node, size_t bucket) const {
  if (IsLocal(node)) return RankOf(node.index << node.level);
  const bool goes_right = (bucket >> (levels_ - node.level) & 1) != 0 && Exists(node.right());
  return Holder(goes_right ? node.right() : node.left(), bucket);
}

}  // namespace hippodrome
