#include "server/routes/completion_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/batching/generation_batcher.h"
#include "server/guarded.h"
#include "server/http/http_replies.h"
#include "server/json/json_responses.h"
#include "server/json/log_probabilities_json.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

// A response that is not streamed takes its tokens in lots of this size.
constexpr int64_t kTokenLot = 64;

std::string Event(const std::string& data) { return "data: " + data + "\n\n"; }

CompletionHead NewHead(const std::string& model, const std::optional<AnswerStamp>& stamp) {
  if (stamp) return {.id = "cmpl-" + stamp->id, .model = model, .created = stamp->created};
  thread_local std::mt19937_64 random{std::random_device{}()};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = fmt::format("cmpl-{:016x}{:016x}", random(), random()),
          .model = model,
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

// What stands before each answer to `prompt`.
std::string EchoedText(const v1::GenerateRequest& request, const std::vector<int32_t>& prompt,
                       const ServedDecoder& model) {
  if (request.has_text()) return request.text();
  return model.Detokenize(prompt).value_or("");  // "" without a tokenizer
}

// One sequence that is being made: an answer, or a candidate for one.
struct Candidate {
  Candidate(std::unique_ptr<Generation> made, int64_t index, const BpeTokenizer* tokenizer)
      : generation(std::move(made)), log_probabilities(tokenizer) {
    choice.index = index;
  }

  std::unique_ptr<Generation> generation;  // until the client has the answer
  bool finished = false;
  CompletionChoice choice;                 // what has not been sent
  LogProbabilitiesJson log_probabilities;  // the same
  double log_probability = 0;              // of all new tokens
  int64_t tokens = 0;
  bool begun = false;
};

class CompletionWork : public HttpWork {
 public:
  CompletionWork(CompletionCall call, CompletionGroup made,
                 const std::optional<AnswerStamp>& stamp);

  void OnUpdate(std::function<void()> wake) override;
  bool Advance(HttpResponse& response) override;

 private:
  size_t PromptOf(size_t candidate) const { return candidate / call_.candidates; }
  // Whether the response is complete, or the error that it becomes.
  absl::StatusOr<bool> Progress(HttpResponse& response);
  // Adds the next update of a candidate to `response`; false when there is none.
  absl::StatusOr<bool> Collect(size_t i, HttpResponse& response);
  void CountPrompt(size_t i, const StreamUpdate& update);
  void Add(size_t i, const StreamUpdate& update);
  void AddScores(size_t i, const StreamUpdate& update);
  std::vector<CompletionChoice> Choices();
  void Fail(const absl::Status& status, HttpResponse& response);
  void Complete(HttpResponse& response);

  const CompletionCall call_;
  const std::shared_ptr<const ServedDecoder> model_;
  std::vector<std::vector<int32_t>> prompts_;
  const CompletionHead head_;
  const bool counts_cached_;
  std::vector<std::string> echoes_;    // of each prompt, where they are wanted
  std::vector<Candidate> candidates_;  // prompt by prompt
  v1::Usage usage_;
  std::shared_ptr<const v1::State> state_;  // of the one answer, where it is wanted
  size_t unfinished_;
};

CompletionWork::CompletionWork(CompletionCall call, CompletionGroup made,
                               const std::optional<AnswerStamp>& stamp)
    : call_(std::move(call)),
      model_(std::move(made.model)),
      prompts_(std::move(made.prompts)),
      head_(NewHead(model_->info().name(), stamp)),
      counts_cached_(!stamp),
      unfinished_(made.generations.size()) {
  for (size_t p = 0; p < prompts_.size(); ++p) {
    if (call_.echo) echoes_.push_back(EchoedText(call_.requests[p], prompts_[p], *model_));
  }
  const BpeTokenizer* tokenizer = model_->Tokenizer().value_or(nullptr);
  for (std::unique_ptr<Generation>& generation : made.generations) {
    const auto index = static_cast<int64_t>(candidates_.size());
    candidates_.emplace_back(std::move(generation), index, tokenizer);
  }
}

void CompletionWork::OnUpdate(std::function<void()> wake) {
  // Waking for each token that nobody sees yet would take a tenth of the time of small models.
  const int64_t tokens = call_.stream ? 1 : kTokenLot;
  for (const Candidate& candidate : candidates_) candidate.generation->OnUpdate(wake, tokens);
}

bool CompletionWork::Advance(HttpResponse& response) {
  const absl::StatusOr<bool> done = Guarded([&] { return Progress(response); });
  if (!done.ok()) Fail(done.status(), response);
  return done.value_or(true);
}

absl::StatusOr<bool> CompletionWork::Progress(HttpResponse& response) {
  for (size_t i = 0; i < candidates_.size(); ++i) {
    while (!candidates_[i].finished) {
      HIPPODROME_ASSIGN_OR_RETURN(const bool more, Collect(i, response));
      if (!more) break;
    }
  }
  if (unfinished_ > 0) return false;
  Complete(response);
  return true;
}

absl::StatusOr<bool> CompletionWork::Collect(size_t i, HttpResponse& response) {
  Candidate& candidate = candidates_[i];
  std::optional<StreamUpdate> update = candidate.generation->Take();
  if (!update) return false;
  HIPPODROME_RETURN_IF_ERROR(update->status);
  if (!candidate.begun) CountPrompt(i, *update);
  Add(i, *update);
  response.tokens.generated += std::ssize(update->token_ids);
  response.tokens.prompt = usage_.prompt_tokens();
  if (update->last()) {
    usage_.set_completion_tokens(usage_.completion_tokens() + update->completion_tokens);
    candidate.finished = true;
    state_ = update->state;
    --unfinished_;
  }
  if (call_.stream) {
    if (call_.scored) candidate.choice.log_probabilities = candidate.log_probabilities.Take();
    response.body +=
        Event(CompletionEvent(head_, candidate.choice, call_.include_usage, update->state.get()));
    const int64_t index = candidate.choice.index;
    candidate.choice = CompletionChoice();
    candidate.choice.index = index;
  }
  return true;
}

// Once for all answers to it.
void CompletionWork::CountPrompt(size_t i, const StreamUpdate& update) {
  if (i % static_cast<size_t>(call_.candidates) != 0) return;
  usage_.set_prompt_tokens(usage_.prompt_tokens() + update.prompt_tokens);
  if (!counts_cached_) return;
  v1::Usage::PromptTokensDetails& details = *usage_.mutable_prompt_tokens_details();
  details.set_cached_tokens(details.cached_tokens() + update.cached_tokens);
}

void CompletionWork::Add(size_t i, const StreamUpdate& update) {
  Candidate& candidate = candidates_[i];
  CompletionChoice& choice = candidate.choice;
  if (call_.echo && !candidate.begun) choice.text = echoes_[PromptOf(i)];
  if (call_.scored) AddScores(i, update);
  candidate.begun = true;
  candidate.tokens += static_cast<int64_t>(update.token_ids.size());
  for (const TokenScores& scores : update.scores) {
    candidate.log_probability += scores.log_probability;
  }
  choice.text += update.text;
  choice.token_ids.insert(choice.token_ids.end(), update.token_ids.begin(), update.token_ids.end());
  choice.finish = update.finish;
}

void CompletionWork::AddScores(size_t i, const StreamUpdate& update) {
  LogProbabilitiesJson& json = candidates_[i].log_probabilities;
  if (call_.echo && !candidates_[i].begun) {
    const std::vector<int32_t>& prompt = prompts_[PromptOf(i)];
    for (size_t t = 0; t < prompt.size(); ++t) {
      json.Add(prompt[t], t == 0 ? nullptr : &update.prompt_scores[t], true);
    }
    json.EndText();
  }
  for (size_t t = 0; t < update.token_ids.size(); ++t) {
    json.Add(update.token_ids[t], &update.scores[t], update.finish != StreamFinish::kEndOfText);
  }
}

// The likeliest candidates of each prompt, best first; of equal ones, the earlier.
std::vector<CompletionChoice> CompletionWork::Choices() {
  const auto mean = [](const Candidate& candidate) {
    return candidate.log_probability / static_cast<double>(std::max<int64_t>(1, candidate.tokens));
  };
  std::vector<CompletionChoice> choices;
  for (auto first = candidates_.begin(); first != candidates_.end(); first += call_.candidates) {
    if (call_.candidates > call_.choices) {
      std::sort(first, first + call_.candidates, [&](const Candidate& a, const Candidate& b) {
        return mean(a) != mean(b) ? mean(a) > mean(b) : a.choice.index < b.choice.index;
      });
    }
    for (auto it = first; it != first + call_.choices; ++it) {
      it->choice.index = static_cast<int64_t>(choices.size());
      if (call_.scored) it->choice.log_probabilities = it->log_probabilities.Take();
      choices.push_back(std::move(it->choice));
    }
  }
  return choices;
}

// A stream that has begun can only end with an error event.
void CompletionWork::Fail(const absl::Status& status, HttpResponse& response) {
  for (Candidate& candidate : candidates_) candidate.generation.reset();
  if (call_.stream) {
    response.body += Event(ErrorBody(status));
    response.status = HttpStatus(status);
  } else {
    response = ErrorResponse(status);
  }
}

void CompletionWork::Complete(HttpResponse& response) {
  if (call_.stream) {
    if (call_.include_usage) response.body += Event(UsageEvent(head_, usage_));
    response.body += Event("[DONE]");
  } else {
    response.body = CompletionBody(head_, Choices(), usage_, state_.get());
  }
}

}  // namespace

std::unique_ptr<HttpWork> NewCompletionWork(CompletionCall call, CompletionGroup made,
                                            const std::optional<AnswerStamp>& stamp) {
  return std::make_unique<CompletionWork>(std::move(call), std::move(made), stamp);
}

}  // namespace hippodrome
