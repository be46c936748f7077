#include "engine/tokenizer/bpe_merger.h"

#include <algorithm>
#include <functional>

namespace hippodrome {
namespace {

constexpr size_t kNone = SIZE_MAX;
constexpr uint32_t kNoRank = UINT32_MAX;

// Ranks are below 2^24 and words shorter than 2^40 bytes.
constexpr int kPositionBits = 40;
constexpr uint64_t kPositionMask = (uint64_t{1} << kPositionBits) - 1;

}  // namespace

// Notes the merge of the token at `position` with the next one, if there is one.
void BpeMerger::FindMerge(size_t position) {
  Node& node = nodes_[position];
  node.merge.rank = kNoRank;
  if (node.next == kNone) return;
  const auto found =
      vocabulary_.merges.find(BpeVocabulary::PairKey(node.token, nodes_[node.next].token));
  if (found == vocabulary_.merges.end()) return;
  node.merge = found->second;
  heap_.push_back(uint64_t{node.merge.rank} << kPositionBits | position);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void BpeMerger::Merge(size_t position) {
  Node& node = nodes_[position];
  Node& gone = nodes_[node.next];
  gone.merge.rank = kNoRank;
  node.token = node.merge.token;
  node.next = gone.next;
  if (node.next != kNone) nodes_[node.next].previous = position;
  FindMerge(position);
  if (node.previous != kNone) FindMerge(node.previous);
}

void BpeMerger::Append(std::string_view word, std::vector<int32_t>& ids) {
  nodes_.resize(word.size());
  for (size_t i = 0; i < word.size(); ++i) {
    nodes_[i].token = vocabulary_.byte_tokens[static_cast<uint8_t>(word[i])];
    nodes_[i].previous = i == 0 ? kNone : i - 1;
    nodes_[i].next = i + 1 == word.size() ? kNone : i + 1;
  }
  heap_.clear();
  for (size_t i = 0; i < word.size(); ++i) FindMerge(i);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const uint64_t best = heap_.back();
    heap_.pop_back();
    const size_t position = best & kPositionMask;
    if (nodes_[position].merge.rank == best >> kPositionBits) Merge(position);
  }
  for (size_t i = 0; i != kNone && i < nodes_.size(); i = nodes_[i].next) {
    ids.push_back(nodes_[i].token);
  }
}

}  // namespace hippodrome
