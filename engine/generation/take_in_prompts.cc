// From the queue of prompts to their first tokens, a chunk at a time.
#include <algorithm>
#include <cassert>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "engine/generation/generator_impl.h"

namespace hippodrome {
namespace {

constexpr int64_t kPacedRows = 4096;

}  // namespace

// Gives a sequence its state when its turn comes, not before: the tree may know more by then.
void Generator::Impl::Start(Sequence& s) {
  if (s.state.slot >= 0) return;
  const GenerationRequest& r = s.request;
  if (r.start) {
    s.state = cache.Reserve(s.cost.pages);
    state->Import(*r.start, s.state);
    if (limits.layout().window == 0) s.checkpoints = r.start->checkpoints;
    checkpoints.Limit();
    checkpoints.KeepFirst(s);
    return;
  }
  // The token before the first that is scored tells how likely that one is.
  const int64_t most = r.score_prompt ? s.score_at - 1 : s.prompt_end - 1;
  if (r.cache_prompt && most > 0) {
    if (auto hit = cache.Take(r.cache_salt, r.prompt, most, s.cost.pages)) {
      s.state = std::move(hit->state);
      s.position = s.cached = hit->position;
      checkpoints.KeepFirst(s);
    }
  }
  if (s.state.slot < 0) s.state = cache.Reserve(s.cost.pages);
  if (r.cache_prompt) {
    s.wanted = cache.Wanted(r.cache_salt, r.prompt, s.position, r.cache_marks);
  }
}

// The next `tokens` of a prompt, with room for the states that the tree wants of them.
ChunkPart Generator::Impl::PartOf(SequenceId id, int64_t tokens) {
  const Sequence& s = sequences.at(id);
  ChunkPart part{.id = id};
  absl::Cleanup drop = [&] { DropCaptures(part); };  // where memory runs out
  for (const int64_t position : s.wanted) {
    if (position <= s.position || position > s.position + tokens) continue;
    part.captured.reserve(part.captured.size() + 1);
    part.captures.reserve(part.captures.size() + 1);
    std::optional<SequenceState> captured = cache.Capture(s.state, position);
    if (!captured) break;
    part.captures.push_back({.position = position, .slot = captured->slot});
    part.captured.push_back(*std::move(captured));
  }
  std::move(drop).Cancel();
  return part;
}

void Generator::Impl::DropCaptures(ChunkPart& part) {
  for (SequenceState& captured : part.captured) cache.Drop(std::move(captured));
  part.captured.clear();
}

void Generator::Impl::KeepCaptures(ChunkPart& part, const Sequence& s) {
  for (size_t i = 0; i < part.captured.size(); ++i) {
    cache.Keep(s.request.cache_salt, s.Tokens(0, part.captures[i].position),
               std::move(part.captured[i]));
  }
  part.captured.clear();
}

// The prompts in turn, as many as there is room for in a pass. Where they all are, and few rows,
// those that decode step in the same pass: alone they would read the weights for themselves.
void Generator::Impl::BeginChunk() {
  stepping.clear();
  std::vector<ChunkPart> members;
  absl::Cleanup drop = [&] {
    for (ChunkPart& part : members) DropCaptures(part);
  };
  members.reserve(sequences.size());
  std::vector<PrefillPart> parts;
  int64_t rows = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {  // there may come more
    const SequenceId id = prompts[i];
    if (rows == prefill.max_rows()) break;
    Sequence& s = sequences.at(id);
    Start(s);
    if (s.position >= s.share_at) StopWaiting(s);  // the tree has what they wait for
    int64_t tokens = TokensToCheckpoint(s.position, prefill.TokensAt(s.position, s.prompt_end),
                                        s.request.checkpoint_interval);
    if (s.position < s.share_at) tokens = std::min(tokens, s.share_at - s.position);
    if (rows + tokens > prefill.max_rows()) continue;
    rows += tokens;
    cache.Slide(s.state, s.position);
    members.push_back(PartOf(id, tokens));
    parts.push_back({.tokens = s.Tokens(s.position, tokens),
                     .start = s.position,
                     .sequence = &s.state,
                     .captures = members.back().captures});
  }
  Steps steps;
  const bool together = members.size() == prompts.size() && rows <= kSteppingRows;
  if (together && rows + decoding() <= prefill.max_rows()) steps = NextSteps();
  prefill.Begin(parts, steps.tokens);
  scored_part = 0;
  scored_rows = 0;
  chunk.swap(members);  // last: without memory there is no chunk in progress
  stepping.swap(steps.ids);
}

// A device works behind the host's back: without waiting, the clock would tell nothing. Small
// layers are not worth a wait each.
void Generator::Impl::Pace() {
  if (prefill.done() || prefill.rows() >= kPacedRows) b.Wait();
}

// Goes to the next row of the chunk that is to be scored; false when there is none. The last token
// of a prompt has no next one to be scored.
bool Generator::Impl::SkipUnscored() {
  for (; scored_part < chunk.size(); ++scored_part, scored_rows = 0) {
    const auto found = sequences.find(chunk[scored_part].id);
    if (found == sequences.end() || !found->second.request.score_prompt) continue;
    const Sequence& s = found->second;
    if (s.position < s.share_at) continue;  // see Share()
    const int64_t tokens = prefill.TokensOf(static_cast<int64_t>(scored_part));
    scored_rows = std::max(scored_rows, s.score_at - 1 - s.position);
    if (scored_rows < tokens && s.position + scored_rows + 1 < s.prompt_end) return true;
  }
  return false;
}

// Rows of the chunk, as many as there is room for logits, also of several prompts. REQUIRES:
// SkipUnscored().
void Generator::Impl::ScoreBlock() {
  struct Part {
    SequenceId id;
    int64_t next;  // the first token that is scored
    int64_t rows;
  };
  std::vector<Part> parts;
  std::vector<int32_t> rows;
  while (std::ssize(rows) < scorer.max_rows() && SkipUnscored()) {
    const auto part = static_cast<int64_t>(scored_part);
    const SequenceId id = chunk[scored_part].id;
    const Sequence& s = sequences.at(id);
    const int64_t next = s.position + scored_rows + 1;
    const int64_t count = std::min({scorer.max_rows() - std::ssize(rows),
                                    prefill.TokensOf(part) - scored_rows, s.prompt_end - next});
    parts.push_back({id, next, count});
    const auto first = static_cast<int32_t>(prefill.FirstRow(part) + scored_rows);
    for (int32_t i = 0; i < count; ++i) rows.push_back(first + i);
    scored_rows += count;
  }
  scorer.ComputeLogits(prefill, rows);
  int64_t first = 0;
  for (const Part& part : parts) {
    scorer.Score(sequences.at(part.id), part.next, first, part.rows);
    first += part.rows;
  }
}

void Generator::Impl::FinishChunk(std::vector<TokenEvent>& events) {
  std::vector<std::vector<SequenceId>> families(chunk.size());  // that have their prompt now
  bool finished = !stepping.empty();
  for (size_t i = 0; i < chunk.size(); ++i) {
    const SequenceId id = chunk[i].id;
    const auto found = sequences.find(id);
    if (found == sequences.end()) continue;  // released meanwhile
    Sequence& s = found->second;
    KeepCaptures(chunk[i], s);
    s.position += prefill.TokensOf(static_cast<int64_t>(i));
    checkpoints.KeepIfDue(s);
    prompts.erase(std::find(prompts.begin(), prompts.end(), id));
    if (!s.prompt_done()) {
      prompts.push_back(id);
      if (s.position == s.share_at) Share(static_cast<int64_t>(i), id);
      continue;
    }
    families[i] = PartFollowers(id);
    finished = true;
  }
  for (const SequenceId id : stepping) {
    StepDone(sequences.at(id));
    families.push_back({id});
  }
  if (finished) SampleLast(families, events);
  chunk.clear();
}

// A chunk in which sequences step is short, and is not interrupted: each is between two tokens
// whenever it is released or saved.
void Generator::Impl::FinishTogether(std::vector<TokenEvent>& events) {
  while (!prefill.done()) prefill.RunLayer(*state);
  while (SkipUnscored()) ScoreBlock();
  FinishChunk(events);
}

// Whether a part of its prompt has been taken in, and none is at the moment: a chunk changes states
// layer by layer.
bool Generator::Impl::BetweenParts(SequenceId id) const {
  const Sequence& s = sequences.at(id);
  const int64_t before = s.request.start ? s.request.start->position : 0;
  return s.state.slot >= 0 && s.position > before &&
         std::none_of(chunk.begin(), chunk.end(),
                      [&](const ChunkPart& part) { return part.id == id; });
}

// Takes a sequence out of the queue, and its slot and pages out of the chunk in progress.
void Generator::Impl::Drop(SequenceId id) {
  const auto prompt = std::find(prompts.begin(), prompts.end(), id);
  if (prompt != prompts.end()) prompts.erase(prompt);
  const auto part = std::find_if(chunk.begin(), chunk.end(),
                                 [&](const ChunkPart& other) { return other.id == id; });
  if (part == chunk.end()) return;
  prefill.Drop(part - chunk.begin());
  DropCaptures(*part);
  part->id = kReleased;
  const bool all = std::all_of(chunk.begin(), chunk.end(),
                               [](const ChunkPart& other) { return other.id == kReleased; });
  if (all) chunk.clear();
}

}  // namespace hippodrome
