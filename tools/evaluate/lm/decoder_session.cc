#include "tools/evaluate/lm/decoder_session.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "engine/base/status.h"
#include "engine/tokenizer/utf8_stream.h"

namespace hippodrome {
namespace {

// Of contexts that come again later.
constexpr int64_t kPrefixSlots = 16;

absl::Status NotANumber() { return Internal("the model computed a value that is not a number"); }

GenerationRequest ScoringRequest(const Continuation& continuation, int64_t shared) {
  GenerationRequest request{.prompt = continuation.ids, .max_tokens = 1};
  request.sampling.temperature = 0;
  request.likeliest = 1;
  request.score_prompt = true;
  request.score_from = continuation.begin;
  request.shared_tokens = shared;
  // What a later question with this context can begin with: the last of its tokens is left over.
  if (continuation.begin > 1) request.cache_marks = {continuation.begin - 1};
  return request;
}

// Tokens that all begin with, of no more than their contexts; 0 for one alone.
int64_t SharedTokens(std::span<const Continuation> continuations) {
  if (continuations.size() < 2) return 0;
  const std::vector<int32_t>& first = continuations.front().ids;
  int64_t shared = continuations.front().begin;
  for (const Continuation& other : continuations.subspan(1)) {
    shared = std::min(shared, other.begin);
    const auto end = first.begin() + shared;
    shared = std::mismatch(first.begin(), end, other.ids.begin()).first - first.begin();
  }
  return shared;
}

ContinuationScore ScoreOf(std::span<const TokenScores> tokens) {
  ContinuationScore score{.tokens = std::ssize(tokens)};
  for (const TokenScores& token : tokens) {
    score.log_probability += token.log_probability;
    score.greedy &= token.log_probability == token.likeliest.front().log_probability;
  }
  return score;
}

// A text that grows until one of its ends.
class GrowingText {
 public:
  // Whether it goes on behind `token`.
  bool Append(const BpeTokenizer& tokenizer, int32_t token, const TextEnd& end) {
    size_t longest = 1;
    for (const std::string& stop : end.until) longest = std::max(longest, stop.size());
    const size_t from = text_.size() - std::min(text_.size(), longest - 1);
    text_ += characters_.Append(tokenizer.Bytes(token));
    size_t first = std::string::npos;
    for (const std::string& stop : end.until) first = std::min(first, text_.find(stop, from));
    if (first == std::string::npos) return true;
    text_.resize(first);
    stopped_ = true;
    return false;
  }
  std::string Finish() { return stopped_ ? text_ : text_ + characters_.Finish(); }

 private:
  std::string text_;
  Utf8Stream characters_;
  bool stopped_ = false;
};

// Runs requests on a generator, as many together as it has room for, and passes on their tokens.
class Batch {
 public:
  explicit Batch(Generator& generator) : generator_(generator) {}
  ~Batch() {
    for (const auto& [id, index] : running_) generator_.Release(id);
  }

  // `request(i)` for i below `count`, in order; `sink(i, event)` says whether the sequence goes on.
  template <typename Request, typename Sink>
  absl::Status Run(size_t count, const Request& request, const Sink& sink) {
    std::optional<GenerationRequest> next;
    for (size_t admitted = 0; admitted < count || !running_.empty();) {
      while (admitted < count) {
        if (!next) next = request(admitted);
        HIPPODROME_RETURN_IF_ERROR(generator_.Validate(*next));
        const auto id = generator_.Admit(*next);
        if (absl::IsResourceExhausted(id.status())) break;
        if (!id.ok()) return id.status();
        running_[*id] = admitted++;
        next.reset();
      }
      HIPPODROME_RETURN_IF_ERROR(Advance(sink));
    }
    return absl::OkStatus();
  }

 private:
  template <typename Sink>
  absl::Status Advance(const Sink& sink) {
    events_.clear();
    if (generator_.prefilling()) {
      generator_.Prefill(Generator::Clock::time_point::max(), events_);
    } else {
      generator_.Step(events_);
    }
    for (const TokenEvent& event : events_) {
      if (event.finish == FinishReason::kFailed) return NotANumber();
      if (sink(running_.at(event.sequence), event) && event.finish == FinishReason::kNone) continue;
      generator_.Release(event.sequence);
      running_.erase(event.sequence);
    }
    return absl::OkStatus();
  }

  Generator& generator_;
  std::map<SequenceId, size_t> running_;  // and which request each is
  std::vector<TokenEvent> events_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DecoderSession>> DecoderSession::Open(const CommandLine& line,
                                                                     const std::string& directory) {
  std::unique_ptr<DecoderSession> session(new DecoderSession);
  HIPPODROME_ASSIGN_OR_RETURN(session->opened_, OpenDecoder(line, directory));
  HIPPODROME_ASSIGN_OR_RETURN(
      session->generator_,
      Generator::Create(*session->opened_.backend, *session->opened_.decoder.model,
                        {.max_sequences = kSequences, .prefix_slots = kPrefixSlots}));
  return session;
}

absl::Status DecoderSession::Check(const Continuation& continuation) const {
  return generator_->Validate(ScoringRequest(continuation, 0));
}

absl::StatusOr<std::vector<std::vector<ContinuationScore>>> DecoderSession::Score(
    std::span<const std::vector<Continuation>> questions) {
  struct Place {
    size_t question;
    size_t continuation;
    int64_t shared;
  };
  std::vector<Place> places;
  std::vector<std::vector<ContinuationScore>> scores;
  for (size_t q = 0; q < questions.size(); ++q) {
    const int64_t shared = SharedTokens(questions[q]);
    for (size_t c = 0; c < questions[q].size(); ++c) places.push_back({q, c, shared});
    scores.emplace_back(questions[q].size());
  }
  const auto request = [&](size_t i) {
    const Place& place = places[i];
    return ScoringRequest(questions[place.question][place.continuation], place.shared);
  };
  const auto sink = [&](size_t i, const TokenEvent& event) {
    scores[places[i].question][places[i].continuation] = ScoreOf(event.prompt_scores);
    return false;
  };
  HIPPODROME_RETURN_IF_ERROR(Batch(*generator_).Run(places.size(), request, sink));
  return scores;
}

absl::StatusOr<std::vector<std::string>> DecoderSession::Write(
    std::span<const std::vector<int32_t>> prompts, const TextEnd& end) {
  std::vector<GrowingText> texts(prompts.size());
  const auto request = [&](size_t i) {
    GenerationRequest request{.prompt = prompts[i], .max_tokens = end.max_tokens};
    request.sampling.temperature = 0;
    return request;
  };
  const auto sink = [&](size_t i, const TokenEvent& event) {
    if (event.finish == FinishReason::kEndOfText) return false;
    return texts[i].Append(*tokenizer(), event.token, end);
  };
  HIPPODROME_RETURN_IF_ERROR(Batch(*generator_).Run(prompts.size(), request, sink));
  std::vector<std::string> written;
  for (GrowingText& text : texts) written.push_back(text.Finish());
  return written;
}

}  // namespace hippodrome
