#include "tools/evaluate/lm/continuation.h"

#include <algorithm>

#include "engine/base/status.h"
#include "engine/tokenizer/gpt2_split.h"

namespace hippodrome {
namespace {

Continuation JoinIds(const std::vector<int32_t>& context,
                     const std::vector<int32_t>& continuation) {
  Continuation joined{.ids = context, .begin = std::ssize(context)};
  joined.ids.insert(joined.ids.end(), continuation.begin(), continuation.end());
  return joined;
}

}  // namespace

void Joiner::Encode(const std::string& context) {
  if (context == context_) return;
  context_ = context;
  const std::string own = context.substr(0, context.size() - TrailingSpaceLength(context));
  own_tokens_ = std::ssize(tokenizer_->Encode(own));
  settled_ = SettledLength(context);
  settled_ids_ = tokenizer_->Encode(context.substr(0, settled_));
}

absl::StatusOr<Continuation> Joiner::JoinTexts(const std::string& context,
                                               const std::string& continuation) {
  if (tokenizer_ == nullptr) return FailedPrecondition("the model has no tokenizer for its text");
  Encode(context);
  const std::vector<int32_t> rest = tokenizer_->Encode(context.substr(settled_) + continuation);
  Continuation joined{.ids = settled_ids_, .begin = own_tokens_};
  joined.ids.insert(joined.ids.end(), rest.begin(), rest.end());
  return joined;
}

absl::StatusOr<Continuation> Joiner::Join(const Passage& context, const Passage& continuation) {
  Continuation joined;
  if (const auto* text = std::get_if<std::string>(&context)) {
    HIPPODROME_ASSIGN_OR_RETURN(joined, JoinTexts(*text, std::get<std::string>(continuation)));
  } else {
    joined = JoinIds(std::get<std::vector<int32_t>>(context),
                     std::get<std::vector<int32_t>>(continuation));
  }
  if (joined.begin >= std::ssize(joined.ids)) {
    return InvalidArgument("it has no token of its own behind the context");
  }
  if (joined.begin > 0) return joined;
  if (end_of_text_ < 0) {
    return FailedPrecondition("the model has no end-of-text token to stand for an empty context");
  }
  joined.ids.insert(joined.ids.begin(), static_cast<int32_t>(end_of_text_));
  joined.begin = 1;
  return joined;
}

Continuation CutContext(Continuation continuation, int64_t most) {
  const int64_t cut = std::max<int64_t>(0, std::ssize(continuation.ids) - most);
  continuation.ids.erase(continuation.ids.begin(), continuation.ids.begin() + cut);
  continuation.begin = std::max<int64_t>(1, continuation.begin - cut);
  return continuation;
}

std::vector<Continuation> RollingContinuations(std::span<const int32_t> ids, int32_t end_of_text,
                                               const RollingWindows& windows) {
  const int64_t count = std::ssize(ids);
  const int64_t window = windows.window == 0 ? count : windows.window;
  const int64_t stride = windows.window == 0 ? count : windows.stride;
  std::vector<Continuation> parts;
  Continuation first{.ids = {end_of_text}, .begin = 1};
  const int64_t begin = std::min(window, count);
  first.ids.insert(first.ids.end(), ids.begin(), ids.begin() + begin);
  parts.push_back(std::move(first));
  for (int64_t next = begin; next < count;) {
    const int64_t scored = std::min(stride, count - next);
    const int64_t end = next + scored;
    const int64_t start = end - window - 1;
    parts.push_back({.ids = {ids.begin() + start, ids.begin() + end}, .begin = next - start});
    next = end;
  }
  return parts;
}

int64_t Likeliest(std::span<const ContinuationScore> scores) {
  return std::max_element(scores.begin(), scores.end(),
                          [](const ContinuationScore& a, const ContinuationScore& b) {
                            return a.log_probability < b.log_probability;
                          }) -
         scores.begin();
}

}  // namespace hippodrome
