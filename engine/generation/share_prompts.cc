// Prompts, and beginnings of prompts, that are taken in once for several sequences.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "engine/generation/generator_impl.h"

namespace hippodrome {

// The sequence, which `part` of the chunk is of, has the tokens that others wait for: they go on
// from here. On processors this is bit for bit where they would have come by themselves.
void Generator::Impl::Share(int64_t part, SequenceId id) {
  Sequence& s = sequences.at(id);
  std::vector<SequenceId> family = std::exchange(s.waiting, {});
  for (const SequenceId waiting : family) {
    Sequence& other = sequences.at(waiting);
    other.state = cache.Fork(s.state, s.position, other.cost.pages);
    other.position = other.cached = s.position;
    other.beginner = 0;
    prompts.push_back(waiting);
  }
  family.push_back(id);
  ScoreNext(part, family);
}

// Scores the token of each behind the last row of `part`, where the first one to be scored is that.
void Generator::Impl::ScoreNext(int64_t part, std::span<const SequenceId> family) {
  bool computed = false;
  for (const SequenceId id : family) {
    Sequence& s = sequences.at(id);
    if (!s.request.score_prompt || s.score_at != s.position) continue;
    if (!computed) {
      const int64_t last = prefill.FirstRow(part) + prefill.TokensOf(part) - 1;
      const int32_t rows[] = {static_cast<int32_t>(last)};
      scorer.ComputeLogits(prefill, rows);
    }
    computed = true;
    s.prompt_scores.clear();
    scorer.Score(s, s.position, 0, 1);
  }
}

// Those that wait for `s` begin by themselves.
void Generator::Impl::StopWaiting(Sequence& s) {
  for (const SequenceId id : std::exchange(s.waiting, {})) {
    sequences.at(id).beginner = 0;
    prompts.push_back(id);
  }
}

// The prompt of a leader is done: the leader, and those that followed it, each with its own state.
std::vector<SequenceId> Generator::Impl::PartFollowers(SequenceId id) {
  Sequence& s = sequences.at(id);
  s.decoding = true;
  s.request.start.reset();
  std::vector<SequenceId> family = std::exchange(s.followers, {});
  for (const SequenceId follower : family) {
    Sequence& f = sequences.at(follower);
    f.state = cache.Fork(s.state, s.position, f.cost.pages);
    f.position = s.position;
    f.cached = std::ssize(f.request.prompt);
    f.checkpoints = s.checkpoints;
    if (f.request.score_prompt) f.prompt_scores = s.prompt_scores;
    f.decoding = true;
    f.leader = 0;
    f.request.start.reset();
  }
  checkpoints.Limit();
  family.push_back(id);
  return family;
}

// Which follower can go on in its leader's place: one that is scored, if any is.
SequenceId Generator::Impl::HeirOf(const Sequence& s) const {
  const auto scored = std::find_if(s.followers.begin(), s.followers.end(), [&](SequenceId id) {
    return sequences.at(id).request.score_prompt;
  });
  return scored != s.followers.end() ? *scored : s.followers.front();
}

// A leader leaves: `heir` takes its place, its state and its other followers.
void Generator::Impl::HandOver(SequenceId id, SequenceId heir) {
  Sequence& from = sequences.at(id);
  Sequence& to = sequences.at(heir);
  if (from.state.slot >= 0) {
    cache.Resize(from.state, to.cost.pages);
    to.state = std::exchange(from.state, {});
  }
  to.position = from.position;
  to.cached = from.cached;
  to.wanted = std::move(from.wanted);
  to.checkpoints = std::move(from.checkpoints);
  if (to.request.score_prompt) to.prompt_scores = std::move(from.prompt_scores);
  to.leader = 0;
  to.beginner = 0;
  to.share_at = from.share_at;
  to.waiting = std::exchange(from.waiting, {});
  std::erase(to.waiting, heir);
  for (const SequenceId waiting : to.waiting) sequences.at(waiting).beginner = heir;
  to.followers = std::exchange(from.followers, {});
  std::erase(to.followers, heir);
  for (const SequenceId follower : to.followers) sequences.at(follower).leader = heir;
  std::replace(prompts.begin(), prompts.end(), id, heir);
  for (ChunkPart& part : chunk) {
    if (part.id == id) part.id = heir;
  }
}

}  // namespace hippodrome
