// Speculative decoding: drafted tokens behind the last ones of their sequences, in one step.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "engine/generation/drafter.h"
#include "engine/generation/generator_impl.h"
#include "engine/generation/speculation.h"

namespace hippodrome {
namespace {

// The rows of a step: of each sequence its last token, and a draft behind it.
struct DraftedRows {
  // Of one more sequence.
  void Add(const Sequence& s, const StepToken& last, std::span<const int32_t> draft) {
    first.push_back(tokens.size());
    tokens.push_back(last);
    how.push_back(s.how());
    for (size_t i = 0; i < draft.size(); ++i) {
      StepToken token = tokens.back();
      token.token = draft[i];
      ++token.position;
      HowToChoose after = how.back();
      ++after.sampling.position;
      if (s.adjusted) {
        adjusted.push_back(i == 0 ? *s.adjusted : adjusted.back());
        adjusted.back().Append(draft[i]);
        after.adjustments = adjusted.back().adjustments();
      }
      tokens.push_back(token);
      how.push_back(after);
    }
  }

  std::vector<size_t> first;  // row of each sequence
  std::vector<StepToken> tokens;
  std::vector<HowToChoose> how;
  std::deque<AdjustedTokens> adjusted;  // what `how` refers to
};

}  // namespace

// Tokens that a draft may have. It ends with its block, for the first token of the next one is
// taken in for good, and before the last token that its sequence may have.
int64_t Generator::Impl::MostDrafted(const Sequence& s) const {
  const int64_t block = std::gcd(state->rewind_block(), drafter->rewind_block());
  int64_t most = std::min(block - 1 - s.position % block, s.request.max_tokens - s.generated - 1);
  while (most > 0 && state->FirstSeen(s.position + most) != state->FirstSeen(s.position)) --most;
  return most;
}

// What is tried in a step, kDraftRows tokens at most.
std::vector<TokenDraft> Generator::Impl::Draft(const Steps& steps) {
  std::vector<DraftWish> wishes;
  for (const SequenceId id : steps.ids) {
    const Sequence& s = sequences.at(id);
    wishes.push_back({.id = id, .sequence = &s, .most = MostDrafted(s)});
  }
  std::vector<TokenDraft> tried = drafter->Draft(wishes);
  int64_t room = kDraftRows;
  auto left = std::ssize(tried);
  for (TokenDraft& draft : tried) {
    const int64_t share = (room + left - 1) / left;
    if (share < std::ssize(draft.tokens)) draft.tokens.resize(share);
    room -= std::ssize(draft.tokens);
    --left;
  }
  return tried;
}

void Generator::Impl::StepWithDrafts(const Steps& steps, std::vector<TokenEvent>& events) {
  const std::vector<TokenDraft> tried = Draft(steps);
  DraftedRows rows;
  for (size_t i = 0; i < tried.size(); ++i) {
    rows.Add(sequences.at(steps.ids[i]), steps.tokens[i], tried[i].tokens);
  }
  std::vector<TokenChoice> chosen = step.Next(rows.tokens, rows.how);
  for (size_t i = 0; i < tried.size(); ++i) {
    Accept(steps.ids[i], tried[i], std::span(chosen).subspan(rows.first[i]), events);
  }
}

// chosen[j]: behind the last token of the sequence and j tokens of its draft.
void Generator::Impl::Accept(SequenceId id, const TokenDraft& draft, std::span<TokenChoice> chosen,
                             std::vector<TokenEvent>& events) {
  Sequence& s = sequences.at(id);
  const auto drafted = std::ssize(draft.tokens);
  int64_t accepted = 0;
  while (accepted < drafted && chosen[accepted].token == draft.tokens[accepted]) ++accepted;
  if (drafted > 0) {
    s.draft_length.Learn(draft.basis, drafted, accepted);
  } else {
    s.draft_length.Forget();
  }
  drafts.drafted += drafted;
  drafts.accepted += accepted;
  for (int64_t j = 1; j <= accepted; ++j) s.ready.push_back(std::move(chosen[j]));
  StepDone(s);
  Append(id, std::move(chosen[0]), events);
}

// One token to each that has some; false where none has.
bool Generator::Impl::GiveReady(std::vector<TokenEvent>& events) {
  bool any = false;
  for (auto& [id, s] : sequences) {
    if (s.ready.empty()) continue;
    any = true;
    TokenChoice choice = std::move(s.ready.front());
    s.ready.pop_front();
    StepDone(s);
    Append(id, std::move(choice), events);
  }
  return any;
}

}  // namespace hippodrome
