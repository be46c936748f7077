#include "engine/state/prefix_cache.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace hippodrome {

int64_t LeastPrefix(int64_t prompt_tokens) {
  return prompt_tokens >= kTransformTokens ? kTransformTokens : kCaptureTokens;
}

bool PrefixCache::Evict() {
  std::optional<SequenceState> oldest = tree_.TakeOldest();
  if (!oldest) return false;
  CountPages(*oldest, -1);
  state_.Release(*oldest);
  ++counts_.evictions;
  return true;
}

void PrefixCache::CountPages(const SequenceState& node, int32_t more) {
  for (const int32_t page : node.pages) {
    const bool had = page_nodes_[page] > 0;
    page_nodes_[page] += more;
    pages_ += static_cast<int64_t>(page_nodes_[page] > 0) - static_cast<int64_t>(had);
  }
}

SequenceState PrefixCache::Reserve(int64_t pages) {
  std::optional<SequenceState> state = state_.Reserve(pages);
  while (!state && Evict()) state = state_.Reserve(pages);
  assert(state);
  return *std::move(state);
}

SequenceState PrefixCache::Fork(const SequenceState& from, int64_t position, int64_t pages) {
  std::optional<SequenceState> state = state_.Fork(from, position, pages);
  while (!state && Evict()) state = state_.Fork(from, position, pages);
  assert(state);
  return *std::move(state);
}

void PrefixCache::Resize(SequenceState& state, int64_t pages) {
  bool done = state_.Resize(state, pages);
  while (!done && Evict()) done = state_.Resize(state, pages);
  assert(done);
}

void PrefixCache::Slide(SequenceState& state, int64_t position) {
  bool done = state_.Slide(state, position);
  while (!done && Evict()) done = state_.Slide(state, position);
  assert(done);
}

std::optional<PrefixCache::Hit> PrefixCache::Take(const std::string& salt,
                                                  std::span<const int32_t> prompt, int64_t most,
                                                  int64_t pages) {
  if (most_nodes_ == 0) return std::nullopt;
  const PrefixTree::Found found = tree_.Find(salt, prompt, LeastPrefix(std::ssize(prompt)), most);
  if (found.position > 0) {
    tree_.Touch(salt, prompt.first(found.position));  // the last to be evicted
    std::optional<SequenceState> state = state_.Fork(*found.state, found.position, pages);
    while (!state && tree_.size() > 1 && Evict()) {
      state = state_.Fork(*found.state, found.position, pages);
    }
    if (state) {
      ++counts_.hits;
      counts_.hit_tokens += found.position;
      return Hit{*std::move(state), found.position};
    }
  }
  ++counts_.misses;
  return std::nullopt;
}

std::vector<int64_t> PrefixCache::Wanted(const std::string& salt, std::span<const int32_t> prompt,
                                         int64_t position, std::span<const int64_t> marks) {
  std::vector<int64_t> wanted;
  if (most_nodes_ == 0) return wanted;
  const int64_t size = std::ssize(prompt);
  const int64_t last = size - 1;  // a node at the end itself could not serve this prompt again
  const int64_t least = LeastPrefix(size);
  for (int64_t at = interval_; at < last; at += interval_) wanted.push_back(at);
  wanted.insert(wanted.end(), marks.begin(), marks.end());
  wanted.push_back(last);
  wanted.push_back(tree_.Find(salt, prompt, least, last).common);
  for (int64_t& at : wanted) at = std::min(at, last) / kCaptureTokens * kCaptureTokens;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::erase_if(wanted, [&](int64_t at) {
    return at < least || at <= position || tree_.Touch(salt, prompt.first(at));
  });
  return wanted;
}

std::optional<SequenceState> PrefixCache::Capture(const SequenceState& from, int64_t position) {
  while (tree_.size() + captures_ >= most_nodes_) {
    if (!Evict()) return std::nullopt;
  }
  std::optional<SequenceState> state = state_.Share(from, position);
  if (state) ++captures_;
  return state;
}

void PrefixCache::Keep(const std::string& salt, std::span<const int32_t> prefix,
                       SequenceState captured) {
  if (tree_.Touch(salt, prefix)) return Drop(std::move(captured));  // another prompt's was first
  --captures_;
  CountPages(captured, 1);
  tree_.Put(salt, prefix, std::move(captured));
}

void PrefixCache::Drop(SequenceState captured) {
  --captures_;
  state_.Release(captured);
}

void PrefixCache::Clear() {
  while (std::optional<SequenceState> oldest = tree_.TakeOldest()) {
    CountPages(*oldest, -1);
    state_.Release(*oldest);
  }
}

PrefixCounts PrefixCache::counts() const {
  PrefixCounts counts = counts_;
  counts.nodes = tree_.size();
  counts.bytes = counts.nodes * state_.bytes_per_slot() + pages_ * state_.bytes_per_page();
  return counts;
}

}  // namespace hippodrome
