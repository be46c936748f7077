#include "server/routes/tgi_routes.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <utility>

#include "engine/base/status.h"
#include "engine/tokenizer/bpe.h"
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
  struct Options {
    bool streamed = false;
    bool listed = false;
  };

  // `tokenizer` must outlive the format.
  TgiFormat(TgiCall call, const BpeTokenizer& tokenizer, Options options)
      : call_(std::move(call)), tokenizer_(tokenizer), options_(options) {}

  void Add(const StreamUpdate& update, HttpResponse& response) override {
    AddTokens(update);
    if (update.last()) result_.finish = Finish(update);
    if (options_.streamed) {
      Stream(update, response);
    } else if (update.last()) {
      Complete(update, response);
    }
  }

 private:
  // An update has one token or more, and their text.
  void AddTokens(const StreamUpdate& update) {
    result_.text += update.text;
    for (const int32_t id : update.token_ids) {
      const bool special = id == tokenizer_.end_of_text();
      result_.tokens.push_back({id, special ? tokenizer_.Bytes(id) : "", special});
    }
    TgiToken& last = result_.tokens.back();
    if (!last.special) last.text = update.text;
  }

  TgiFinish Finish(const StreamUpdate& update) const {
    if (update.finish == StreamFinish::kLength) return TgiFinish::kLength;
    return result_.tokens.back().special ? TgiFinish::kEndOfText : TgiFinish::kStopString;
  }

  void Stream(const StreamUpdate& update, HttpResponse& response) const {
    const size_t total = result_.tokens.size();
    const size_t first = total - update.token_ids.size();
    for (size_t i = first; i < total; ++i) {
      const bool end = update.last() && i + 1 == total;
      response.body += ServerSentEvent(TgiEvent(call_, static_cast<int64_t>(i) + 1,
                                                result_.tokens[i], end ? &result_ : nullptr));
    }
  }

  void Complete(const StreamUpdate& update, HttpResponse& response) const {
    response.body = TgiBody(call_, result_, options_.listed);
    const auto total =
        std::chrono::duration_cast<std::chrono::milliseconds>(TgiClock::now() - started_);
    const auto add = [&](const char* name, int64_t value) {
      response.headers.emplace_back(name, std::to_string(value));
    };
    add("x-compute-characters", CountCodePoints(call_.inputs));
    add("x-total-time", total.count());
    add("x-time-per-token", total.count() / update.completion_tokens);
    add("x-prompt-tokens", update.prompt_tokens);
    add("x-generated-tokens", update.completion_tokens);
  }

  const TgiCall call_;
  const BpeTokenizer& tokenizer_;
  const Options options_;
  const TgiClock::time_point started_ = TgiClock::now();
  TgiResult result_;
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

HttpReply TgiRoutes::Answer(const HttpRequest& request, Form form) {
  absl::StatusOr<TgiCall> call = ParseTgi(request.body);
  if (!call.ok()) return Failed(call.status(), metrics_, request.route->errors);
  const auto tokenizer = handlers_.DecoderTokenizer(call->request.model());
  if (!tokenizer.ok()) return Failed(tokenizer.status(), metrics_, request.route->errors);
  Truncate(**tokenizer, *call);
  // Drawn here, for the details tell it.
  if (!call->request.has_seed()) call->request.set_seed(DrawSeed());
  auto generation = handlers_.Generate(call->request, Caller(Api::kHttp, request.client));
  if (!generation.ok()) return Failed(generation.status(), metrics_, request.route->errors);
  const bool streamed = form == Form::kStream || (form == Form::kAsAsked && call->stream);
  std::string model = handlers_.ModelName(call->request.model());
  const TgiFormat::Options options{streamed, form == Form::kAsAsked};
  return GenerationReply(request, *std::move(generation),
                         std::make_unique<TgiFormat>(*std::move(call), **tokenizer, options),
                         streamed, std::move(model), metrics_);
}

HttpReply TgiRoutes::Generate(const HttpRequest& request) { return Answer(request, Form::kWhole); }

HttpReply TgiRoutes::GenerateStream(const HttpRequest& request) {
  return Answer(request, Form::kStream);
}

HttpReply TgiRoutes::Root(const HttpRequest& request) { return Answer(request, Form::kAsAsked); }

}  // namespace hippodrome
