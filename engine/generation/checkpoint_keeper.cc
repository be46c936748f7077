#include "engine/generation/checkpoint_keeper.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome {
namespace {

// Of one checkpoint; 1 of a model whose layers keep nothing but rows.
int64_t CheckpointBytes(const StateLayout& layout) {
  int64_t bytes = 0;
  for (const LayerLayout& layer : layout.layers) {
    for (const StateArray& array : layer.arrays) {
      bytes += array.values() * static_cast<int64_t>(sizeof(float));
    }
  }
  return std::max<int64_t>(1, bytes);
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(const DecodeState& state, const StateLayout& layout,
                                   int64_t bytes, std::map<SequenceId, Sequence>& sequences)
    : state_(state),
      layout_(layout),
      most_(bytes / CheckpointBytes(layout)),
      sequences_(sequences) {}

void CheckpointKeeper::KeepFirst(Sequence& s) {
  const int64_t last = s.checkpoints.empty() ? 0 : s.checkpoints.back().position;
  const int64_t interval = s.request.checkpoint_interval;
  if (interval > 0 && s.position - last >= interval) Keep(s);
}

void CheckpointKeeper::KeepIfDue(Sequence& s) {
  const int64_t interval = s.request.checkpoint_interval;
  if (interval > 0 && s.position % interval == 0) Keep(s);
}

void CheckpointKeeper::Keep(Sequence& s) {
  if (most_ < 1) return;
  if (std::ssize(s.checkpoints) == kMaxCheckpoints) s.checkpoints.erase(s.checkpoints.begin());
  Limit(most_ - 1);
  s.checkpoints.push_back({.position = s.position,
                           .layers = std::make_shared<const std::vector<LayerArrays>>(
                               state_.ExportRecurrent(s.state, s.position, layout_))});
}

void CheckpointKeeper::Limit(int64_t most) {
  int64_t held = 0;
  for (const auto& [id, s] : sequences_) held += std::ssize(s.checkpoints);
  for (; held > most; --held) {
    const auto largest =
        std::max_element(sequences_.begin(), sequences_.end(), [](const auto& a, const auto& b) {
          return a.second.checkpoints.size() < b.second.checkpoints.size();
        });
    std::vector<Checkpoint>& checkpoints = largest->second.checkpoints;
    checkpoints.erase(checkpoints.begin());
  }
}

int64_t TokensToCheckpoint(int64_t position, int64_t tokens, int64_t interval) {
  if (interval == 0) return tokens;
  const SequencePart part = {.tokens = static_cast<int32_t>(tokens),
                             .start = static_cast<int32_t>(position)};
  int64_t next = interval - position % interval;
  while (next < tokens && !FitsCapture(part, next)) next += interval;
  return std::min(next, tokens);
}

}  // namespace hippodrome
