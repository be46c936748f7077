#include "engine/generation/sequence.h"

#include <algorithm>
#include <utility>

#include "engine/state/prefix_cache.h"

namespace hippodrome {
namespace {

// Tokens that are forgotten at once.
constexpr size_t kForgotten = 4096;

}  // namespace

Sequence::Sequence(GenerationRequest r, const Footprint& cost) : request(std::move(r)), cost(cost) {
  if (const SavedState* start = request.start.get(); start != nullptr) {
    position = start->position;
    lossy = start->lossy;
    tokens = start->tokens;
    first = tokens.empty() ? position : 0;
    if (start->last_token) tokens.push_back(*start->last_token);
  }
  const std::vector<int32_t>& prompt = request.prompt;
  tokens.insert(tokens.end(), prompt.begin(), prompt.end());
  prompt_end = prompt.empty() ? position : length();
  prompt_tokens = prompt.empty() ? request.start->prompt_tokens : length();
  score_at = length() - std::ssize(prompt) + request.score_from;
  share_at = request.shared_tokens / kCaptureTokens * kCaptureTokens;
  if (share_at < LeastPrefix(std::ssize(prompt))) share_at = 0;
  if (request.changes.any()) {
    // Of unknown tokens there are no penalties.
    const std::span<const int32_t> known = first == 0 ? std::span(tokens) : std::span<int32_t>();
    const auto before = std::min(known.size(), static_cast<size_t>(prompt_tokens));
    adjusted.emplace(request.changes, known.first(before));
    for (const int32_t token : known.subspan(before)) adjusted->Append(token);
  }
  const bool follows_a_token = request.start && request.start->last_token;
  if (request.score_prompt && score_at == 0 && !follows_a_token) prompt_scores.emplace_back();
}

bool Sequence::CanLead(const GenerationRequest& other) const {
  if (leader != 0 || prompt_done() || other.prompt.empty()) return false;
  if (other.score_prompt && (!request.score_prompt || other.score_from != request.score_from ||
                             other.likeliest.value_or(0) != request.likeliest.value_or(0))) {
    return false;
  }
  return other.cache_prompt == request.cache_prompt && other.cache_salt == request.cache_salt &&
         other.checkpoint_interval == request.checkpoint_interval && other.start == request.start &&
         other.prompt == request.prompt;
}

bool Sequence::CanBegin(const Sequence& other) const {
  const GenerationRequest& theirs = other.request;
  return leader == 0 && beginner == 0 && share_at > 0 && share_at == other.share_at &&
         position < share_at && theirs.cache_prompt == request.cache_prompt &&
         theirs.cache_salt == request.cache_salt &&
         std::equal(tokens.begin(), tokens.begin() + share_at, other.tokens.begin());
}

void Sequence::Append(int32_t token) {
  tokens.push_back(token);
  if (!request.keep_tokens && tokens.size() >= kForgotten) {
    first += std::ssize(tokens) - 1;
    tokens.erase(tokens.begin(), tokens.end() - 1);
  }
  if (adjusted) adjusted->Append(token);
}

HowToChoose Sequence::how() const {
  HowToChoose how = {.sampling = {request.sampling, length()}, .likeliest = request.likeliest};
  if (adjusted) how.adjustments = adjusted->adjustments();
  return how;
}

}  // namespace hippodrome
