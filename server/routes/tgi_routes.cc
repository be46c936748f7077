#include "server/routes/tgi_routes.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/tokenizer/bpe.h"
#include "server/handlers/generation_call.h"
#include "server/http/http_replies.h"
#include "server/json/tgi_json.h"
#include "server/routes/generation_work.h"

namespace hippodrome {
namespace {

using TgiClock = std::chrono::steady_clock;

int64_t CountCodePoints(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// Gathers tokens; gives events as they come, or a body in the end.
class TgiFormat : public GenerationFormat {
 public:
  // Of the answers `made` to `call`, of the model whose tokenizer that is. `listed`: see TgiBody().
  TgiFormat(TgiCall call, const CompletionGroup& made, const BpeTokenizer& tokenizer, bool listed)
      : call_(std::move(call)),
        model_(made.model),
        prompt_(made.prompts.front()),
        tokenizer_(tokenizer),
        listed_(listed),
        candidates_(made.generations.size()) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      candidates_[i].result.seed = ChoiceSeed(call_.request.seed(), static_cast<int64_t>(i));
    }
  }

  void Add(size_t generation, const StreamUpdate& update, HttpResponse& response) override {
    Candidate& candidate = candidates_[generation];
    if (!update.prompt_scores.empty()) AddPrompt(update, candidate.result);
    AddTokens(update, candidate);
    if (update.last()) candidate.result.finish = Finish(update, candidate.result);
    if (call_.stream) Stream(update, candidate.result, response);
  }

  void Complete(HttpResponse& response) override {
    const auto mean = [](const Candidate& candidate) {
      return candidate.log_probability / static_cast<double>(candidate.result.tokens.size());
    };
    const auto best =
        std::max_element(candidates_.begin(), candidates_.end(),
                         [&](const Candidate& a, const Candidate& b) { return mean(a) < mean(b); });
    std::rotate(candidates_.begin(), best, best + 1);
    std::vector<TgiResult> results;
    for (Candidate& candidate : candidates_) results.push_back(std::move(candidate.result));
    response.body = TgiBody(call_, results, listed_);
    AddHeaders(static_cast<int64_t>(results.front().tokens.size()), response);
  }

 private:
  struct Candidate {
    TgiResult result;
    double log_probability = 0;  // of its tokens
  };

  TgiToken NewToken(int32_t id, std::optional<float> log_probability) const {
    return {id, tokenizer_.Bytes(id), id == tokenizer_.end_of_text(), log_probability};
  }

  // The first token has nothing before it.
  void AddPrompt(const StreamUpdate& update, TgiResult& result) const {
    for (size_t t = 0; t < prompt_.size(); ++t) {
      const auto score =
          t == 0 ? std::nullopt : std::optional(update.prompt_scores[t].log_probability);
      result.prefill.push_back(NewToken(prompt_[t], score));
    }
  }

  // An update has one token or more, and their text.
  void AddTokens(const StreamUpdate& update, Candidate& candidate) const {
    TgiResult& result = candidate.result;
    result.text += update.text;
    for (size_t t = 0; t < update.token_ids.size(); ++t) {
      TgiToken& token = result.tokens.emplace_back(NewToken(update.token_ids[t], std::nullopt));
      if (!token.special) token.text.clear();
      if (update.scores.empty()) continue;
      const TokenScores& scores = update.scores[t];
      token.log_probability = scores.log_probability;
      candidate.log_probability += scores.log_probability;
      if (call_.request.log_probabilities() == 0) continue;
      std::vector<TgiToken>& top = result.top_tokens.emplace_back();
      for (const LikelyToken& likely : scores.likeliest) {
        top.push_back(NewToken(likely.token, likely.log_probability));
      }
    }
    TgiToken& last = result.tokens.back();
    if (!last.special) last.text = update.text;
  }

  static TgiFinish Finish(const StreamUpdate& update, const TgiResult& result) {
    if (update.finish == StreamFinish::kLength) return TgiFinish::kLength;
    return result.tokens.back().special ? TgiFinish::kEndOfText : TgiFinish::kStopString;
  }

  void Stream(const StreamUpdate& update, const TgiResult& result, HttpResponse& response) const {
    const size_t total = result.tokens.size();
    for (size_t i = total - update.token_ids.size(); i < total; ++i) {
      const bool last = update.last() && i + 1 == total;
      response.body += ServerSentEvent(TgiEvent(call_, result, i, last));
    }
  }

  void AddHeaders(int64_t tokens, HttpResponse& response) const {
    const auto total =
        std::chrono::duration_cast<std::chrono::milliseconds>(TgiClock::now() - started_);
    const auto add = [&](const char* name, int64_t value) {
      response.headers.emplace_back(name, std::to_string(value));
    };
    add("x-compute-characters", CountCodePoints(call_.inputs));
    add("x-total-time", total.count());
    add("x-time-per-token", total.count() / tokens);
    add("x-prompt-tokens", std::ssize(prompt_));
    add("x-generated-tokens", tokens);
  }

  const TgiCall call_;
  const std::shared_ptr<const ServedDecoder> model_;
  const std::vector<int32_t> prompt_;
  const BpeTokenizer& tokenizer_;
  const bool listed_;
  const TgiClock::time_point started_ = TgiClock::now();
  std::vector<Candidate> candidates_;
};

uint64_t DrawSeed() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

// Keeps the last tokens of the prompt where the call says so.
void Truncate(const BpeTokenizer& tokenizer, TgiCall& call) {
  if (!call.truncate) return;
  const std::vector<int32_t> ids = tokenizer.Encode(call.inputs);
  const int64_t kept = std::min(*call.truncate, std::ssize(ids));
  call.request.mutable_token_ids()->mutable_ids()->Add(ids.end() - kept, ids.end());
}

}  // namespace

absl::StatusOr<TgiCall> TgiRoutes::ReadCall(const std::string& body, Form form) {
  HIPPODROME_ASSIGN_OR_RETURN(TgiCall call, ParseTgi(body));
  const bool streamed = form == Form::kStream || (form == Form::kAsAsked && call.stream);
  call.stream = false;
  if (streamed) HIPPODROME_RETURN_IF_ERROR(MakeStreamed(call));
  return call;
}

HttpReply TgiRoutes::Answer(const HttpRequest& request, Form form) {
  absl::StatusOr<TgiCall> call = ReadCall(request.body, form);
  if (!call.ok()) return Failed(call.status(), request.route->errors);
  const auto model = handlers_.FindDecoder(call->request.model());
  if (!model.ok()) return Failed(model.status(), request.route->errors);
  const auto tokenizer = (*model)->Tokenizer();
  if (!tokenizer.ok()) return Failed(tokenizer.status(), request.route->errors);
  Truncate(**tokenizer, *call);
  // Drawn here, for the details tell it.
  if (!call->request.has_seed()) call->request.set_seed(DrawSeed());
  auto made = handlers_.Complete(*model, {&call->request, 1}, call->candidates, request.caller());
  if (!made.ok()) return Failed(made.status(), request.route->errors);
  const bool streamed = call->stream;
  auto format =
      std::make_unique<TgiFormat>(*std::move(call), *made, **tokenizer, form == Form::kAsAsked);
  return GenerationReply(request, std::move(made->generations), std::move(format), streamed,
                         (*model)->info().name());
}

HttpReply TgiRoutes::Generate(const HttpRequest& request) { return Answer(request, Form::kWhole); }

HttpReply TgiRoutes::GenerateStream(const HttpRequest& request) {
  return Answer(request, Form::kStream);
}

HttpReply TgiRoutes::Root(const HttpRequest& request) { return Answer(request, Form::kAsAsked); }

}  // namespace hippodrome
