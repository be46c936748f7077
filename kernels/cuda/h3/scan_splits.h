// How the scan of a prompt cuts its parts into blocks.
#ifndef HIPPODROME_KERNELS_CUDA_H3_SCAN_SPLITS_H_
#define HIPPODROME_KERNELS_CUDA_H3_SCAN_SPLITS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome::cuda {

// Tokens of the longest share of `parts`, where `splits` blocks take every splits-th.
inline int64_t LongestShare(std::span<const SequencePart> parts, int64_t splits) {
  std::vector<int64_t> tokens(static_cast<size_t>(splits));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].slot >= 0) tokens[i % tokens.size()] += parts[i].tokens;
  }
  return *std::ranges::max_element(tokens);
}

// Blocks that share the parts, for each of `groups` of channels; a multiprocessor has one block at
// a time. Many balance its load, but each makes the matrices of its channels anew, which takes as
// long as kSetupTokens tokens: the fewest that end first.
inline int64_t ScanSplits(std::span<const SequencePart> parts, int64_t groups,
                          int64_t multiprocessors) {
  constexpr int64_t kSetupTokens = 800;
  constexpr int64_t kMostTurns = 6;
  const int64_t most = std::min(std::ssize(parts), kMostTurns * multiprocessors / groups + 1);
  int64_t best = 1;
  int64_t least = INT64_MAX;
  for (int64_t splits = 1; splits <= most; ++splits) {
    const int64_t turns = (groups * splits + multiprocessors - 1) / multiprocessors;
    const int64_t time = turns * (kSetupTokens + LongestShare(parts, splits));
    if (time >= least) continue;
    least = time;
    best = splits;
  }
  return best;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_SCAN_SPLITS_H_
