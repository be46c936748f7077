#include "server/batching/running_sequence.h"

#include <iterator>
#include <utility>

#include "engine/base/status.h"
#include "server/log/log.h"

namespace hippodrome {

TextDecoder::TextDecoder(const BpeTokenizer* tokenizer, std::vector<std::string> stops,
                         const std::string& pending)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {
  if (tokenizer_ != nullptr) ready_ = stops_.Append(characters_.Append(pending));
}

std::string TextDecoder::Append(int32_t token) {
  if (tokenizer_ == nullptr) return "";
  std::string text = std::exchange(ready_, "");
  text += stops_.Append(characters_.Append(tokenizer_->Bytes(token)));
  return text;
}

std::string TextDecoder::Finish() {
  std::string text = stops_.Append(characters_.Finish());
  text += FinishCharacters();
  return text;
}

std::string TextDecoder::FinishCharacters() {
  std::string text = std::exchange(ready_, "");
  text += stops_.Finish();
  return text;
}

std::string TextDecoder::pending() const {
  return stopped() ? "" : ready_ + stops_.held() + characters_.held();
}

namespace {

// False where the client is too far behind: then the stream has failed.
bool Push(TokenStream& stream, StreamUpdate update) {
  if (stream.Push(std::move(update))) return true;
  stream.Fail(ResourceExhausted("the client reads too slowly: too many tokens wait for it"));
  return false;
}

}  // namespace

RunningSequence::RunningSequence(const BpeTokenizer* tokenizer, GenerationCall call,
                                 const Context& context, Clock::time_point submitted,
                                 std::shared_ptr<TokenStream> stream)
    : text_(tokenizer, std::move(call.stop), context.pending_text),
      caller_(std::move(call.caller)),
      prompt_only_(call.prompt_only),
      keep_state_(std::move(call.keep_state)),
      migrate_(std::move(call.migrate)),
      context_(context),
      submitted_(submitted),
      stream_(std::move(stream)) {}

StreamUpdate RunningSequence::Update(TokenEvent event) {
  StreamUpdate update;
  update.prompt_tokens = context_.tokens;
  update.cached_tokens = context_.held + cached_;
  update.prompt_scores = std::move(event.prompt_scores);
  if (prompt_only_) {
    update.finish = StreamFinish::kLength;
    return update;
  }
  update.token_ids.push_back(event.token);
  if (event.scores) update.scores.push_back(*std::move(event.scores));
  update.completion_tokens = ++completion_tokens_;
  if (event.finish != FinishReason::kEndOfText) update.text = text_.Append(event.token);
  if (event.finish == FinishReason::kLength && keep_state_) {
    update.text += text_.FinishCharacters();
  } else if (event.finish != FinishReason::kNone) {
    update.text += text_.Finish();
  }
  if (event.finish == FinishReason::kEndOfText) {
    update.finish = StreamFinish::kEndOfText;
  } else if (text_.stopped()) {
    update.finish = StreamFinish::kStopString;
  } else if (event.finish == FinishReason::kLength) {
    update.finish = StreamFinish::kLength;
  }
  return update;
}

void RunningSequence::Measure(Clock::time_point now, ModelMetrics& metrics) {
  if (prompt_only_) return;
  metrics.Generated(1);
  if (completion_tokens_ == 1) {
    metrics.FirstToken(caller_.api, caller_.Waited(submitted_, now), now - admitted_);
    first_token_ = now;
  } else {
    metrics.NextToken(caller_.api, now - last_token_);
  }
  last_token_ = now;
}

bool RunningSequence::OnToken(TokenEvent event, Clock::time_point now, ModelMetrics& metrics) {
  if (event.finish == FinishReason::kFailed) {
    stream_->Fail(Internal("the model computed a value that is not a number"));
    metrics.NotANumber();
    Log(LogLine(LogLevel::kError, "not_a_number"));
    return false;
  }
  StreamUpdate update = Update(std::move(event));
  metrics.Scored(std::ssize(update.prompt_scores) + std::ssize(update.scores));
  Measure(now, metrics);
  const bool last = update.last();
  if (last && keep_state_) {
    last_ = std::move(update);
  } else if (!Push(*stream_, std::move(update))) {
    metrics.Cancelled(Phase::kDecode);
    return false;
  }
  if (last) {
    metrics.Finished(caller_.api, caller_.Waited(submitted_, now), now - first_token_,
                     completion_tokens_);
  }
  return !last;
}

void RunningSequence::KeepState(SavedState state, std::shared_ptr<const void> delivered) {
  if (prompt_only_) {
    state.last_token.reset();  // nobody was given it
  } else {
    state.pending_text = text_.pending();
  }
  keep_state_(std::move(state),
              [stream = stream_, update = *std::move(last_),
               delivered = std::move(delivered)](std::shared_ptr<const v1::State> kept) {
                StreamUpdate last = update;
                last.state = std::move(kept);
                Push(*stream, std::move(last));
              });
}

bool RunningSequence::Migrate(SavedState state, const std::shared_ptr<const void>& delivered) {
  if (state.last_token) state.pending_text = text_.pending();
  StreamUpdate update;
  update.finish = StreamFinish::kMigrated;
  update.prompt_tokens = context_.tokens;
  update.cached_tokens = context_.held + cached_;
  update.completion_tokens = completion_tokens_;
  const auto kept = [stream = stream_, update,
                     delivered](const std::shared_ptr<const v1::State>& state) {
    if (state == nullptr) {
      stream->Fail(Unavailable("the server is stopping, and could not keep the state"));
      return;
    }
    StreamUpdate last = update;
    last.state = state;
    Push(*stream, std::move(last));
  };
  return migrate_(std::move(state), kept);
}

}  // namespace hippodrome
