#include "tests/testing/fake_engine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "engine/base/check_range.h"
#include "engine/base/status.h"
#include "kernels/device_error.h"

namespace hippodrome {
namespace {

constexpr std::chrono::milliseconds kHeld{1};

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "FakeEngine: %s\n", what);
  std::abort();
}

}  // namespace

float FakeLogProbability(int32_t previous, int32_t token) {
  const int32_t distance = (token - previous - 1 + 257) % 257;
  return -0.1f - static_cast<float>(distance) / 3 - static_cast<float>(previous) / 7000;
}

TokenScores FakeScores(int32_t previous, int32_t token, int32_t top) {
  TokenScores scores{.log_probability = FakeLogProbability(previous, token)};
  for (int32_t i = 0; i < top; ++i) {
    const int32_t other = (previous + 1 + i) % 257;
    scores.likeliest.push_back({other, FakeLogProbability(previous, other)});
  }
  return scores;
}

void FakeEngine::CheckThread() const {
  std::thread::id none;
  const std::thread::id here = std::this_thread::get_id();
  if (thread_.compare_exchange_strong(none, here)) return;
  Require(none == here, "called from two threads");
}

void FakeEngine::ThrowIf(FakeFault here) const {
  if (fault.compare_exchange_strong(here, FakeFault::kNone)) throw std::bad_alloc();
}

Footprint FakeEngine::Cost(int64_t prompt_tokens, int64_t max_tokens) const {
  const int64_t pages = (prompt_tokens + max_tokens + 15) / 16;
  return {1, pages, 100 + 10 * pages};
}

Footprint FakeEngine::capacity() const {
  return {options_.slots, options_.pages, 100 * options_.slots + 10 * options_.pages};
}

absl::Status FakeEngine::Validate(const GenerationRequest& request) const {
  ThrowIf(FakeFault::kValidate);
  const bool nothing_new = request.start != nullptr && request.prompt.empty();
  if (!nothing_new) {
    HIPPODROME_RETURN_IF_ERROR(CheckTokenIds("prompt", request.prompt, options_.vocab_size));
  }
  const int64_t held = request.start == nullptr ? 0 : request.start->position;
  const Footprint cost = Cost(held + std::ssize(request.prompt), request.max_tokens);
  if (cost.pages <= options_.pages) return absl::OkStatus();
  return absl::OutOfRangeError("the request needs " + std::to_string(cost.pages) +
                               " pages, but the server has " + std::to_string(options_.pages));
}

Footprint FakeEngine::used() const {
  return {used_slots, used_pages, 100 * used_slots + 10 * used_pages};
}

bool FakeEngine::prefilling() const {
  CheckThread();
  for (const auto& [id, sequence] : sequences_) {
    if (!sequence.prompt_done()) return true;
  }
  return false;
}

int64_t FakeEngine::decoding() const {
  CheckThread();
  int64_t count = 0;
  for (const auto& [id, s] : sequences_) count += s.prompt_done() && !s.finished ? 1 : 0;
  return count;
}

absl::StatusOr<SequenceId> FakeEngine::Admit(GenerationRequest request) {
  CheckThread();
  ThrowIf(FakeFault::kAdmit);
  int64_t prefilled = 0;
  if (const auto start = std::move(request.start)) {
    // What a state is made of, so that its tokens go on as they would have.
    std::vector<int32_t> prompt = start->tokens;
    if (start->last_token) prompt.push_back(*start->last_token);
    prompt.insert(prompt.end(), request.prompt.begin(), request.prompt.end());
    request.prompt = std::move(prompt);
    prefilled = start->position;
  }
  const Footprint cost = Cost(static_cast<int64_t>(request.prompt.size()), request.max_tokens);
  Require(used_slots < options_.slots && used_pages + cost.pages <= options_.pages,
          "Admit() without room");
  used_slots += 1;
  used_pages += cost.pages;
  const SequenceId id = next_id_++;
  admitted_ += static_cast<char>(request.prompt.front());
  sequences_[id] = {.request = std::move(request), .cost = cost, .prefilled = prefilled};
  return id;
}

int64_t FakeEngine::Remaining(SequenceId sequence) const {
  CheckThread();
  const Sequence& s = sequences_.at(sequence);
  const auto prompt_tokens = static_cast<int64_t>(s.request.prompt.size());
  return std::max<int64_t>(prompt_tokens - s.prefilled, 0) + s.request.max_tokens - s.generated;
}

TokenEvent FakeEngine::Next(SequenceId id, Sequence& s) {
  const std::vector<int32_t>& prompt = s.request.prompt;
  const size_t size = prompt.size();
  TokenEvent event{id, prompt[s.generated % size], FinishReason::kNone, {}, {}};
  if (const auto top = s.request.likeliest) {
    const int32_t previous = prompt[(size + s.generated - 1) % size];
    event.scores = FakeScores(previous, event.token, *top);
    if (s.request.score_prompt && s.generated == 0) {
      event.prompt_scores.resize(size);
      for (size_t i = 1; i < size; ++i) {
        event.prompt_scores[i] = FakeScores(prompt[i - 1], prompt[i], *top);
      }
      event.prompt_scores.erase(event.prompt_scores.begin(),
                                event.prompt_scores.begin() + s.request.score_from);
    }
  }
  ++s.generated;
  if (s.generated == s.request.max_tokens) event.finish = FinishReason::kLength;
  if (event.token == kFakeEndOfText && !s.request.ignore_eos) {
    event.finish = FinishReason::kEndOfText;
  }
  s.finished = event.finish != FinishReason::kNone;
  return event;
}

void FakeEngine::Prefill(Clock::time_point, std::vector<TokenEvent>& events) {
  CheckThread();
  stepped_ = 0;
  if (hold_prefill) {
    ThrowIf(FakeFault::kPrefill);
    std::this_thread::sleep_for(kHeld);
    return;
  }
  if (steps_beside_prefill) stepped_ = decoding();
  ThrowIf(FakeFault::kPrefill);
  if (stepped_ > 0) Step(events);
  for (auto& [id, sequence] : sequences_) {
    if (sequence.prompt_done()) continue;
    sequence.prefilled += options_.chunk_tokens;
    if (sequence.prompt_done()) events.push_back(Next(id, sequence));
  }
}

void FakeEngine::Step(std::vector<TokenEvent>& events) {
  CheckThread();
  ThrowIf(FakeFault::kStep);
  if (break_device) throw DeviceError("cuda: h3_step: broken by a test");
  if (hold_decode || slow) std::this_thread::sleep_for(kHeld);
  if (hold_decode) return;
  ++steps;
  const size_t before = events.size();
  for (auto& [id, sequence] : sequences_) {
    if (!sequence.prompt_done() || sequence.finished) continue;
    events.push_back(Next(id, sequence));
  }
  Require(events.size() > before, "Step() with nothing to do");
}

void FakeEngine::Release(SequenceId id) {
  CheckThread();
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return;
  used_slots -= 1;
  used_pages -= it->second.cost.pages;
  sequences_.erase(it);
}

// With all tokens but the last in it, or a part of the prompt, as the engine has it.
absl::StatusOr<SavedState> FakeEngine::Save(SequenceId sequence) const {
  CheckThread();
  if (sequences_.at(sequence).prefilled == 0) return FailedPrecondition("nothing is taken in");
  const Sequence& s = sequences_.at(sequence);
  const std::vector<int32_t>& prompt = s.request.prompt;
  SavedState state{.model = "fake",
                   .arithmetic = arithmetic(),
                   .tokens = prompt,
                   .seed = s.request.sampling.seed};
  const auto size = static_cast<int64_t>(prompt.size());
  if (s.generated > 0) {
    for (int64_t i = 0; i + 1 < s.generated; ++i) state.tokens.push_back(prompt[i % size]);
    state.last_token = prompt[(s.generated - 1) % size];
  } else {
    state.tokens.resize(std::min(s.prefilled, size));
  }
  state.position = static_cast<int64_t>(state.tokens.size());
  state.layers.push_back({.arrays = {{1, 2}}});
  return state;
}

}  // namespace hippodrome
