// EncodingHandlers::FillMask().
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/tasks/fill_mask.h"
#include "server/handlers/encoding_handlers.h"
#include "server/handlers/encoding_inputs.h"
#include "server/handlers/encoding_submit.h"

namespace hippodrome {
namespace {

constexpr int64_t kDefaultTopK = 5;

// The text of one input without what the layout added, and where its masks are in it.
struct MaskedInput {
  std::vector<int32_t> ids;
  std::vector<size_t> masks;
};

struct Filler {
  const WordPieceTokenizer& tokenizer;
  int64_t top_k = kDefaultTopK;
  std::vector<int32_t> targets = {};  // empty: all tokens
  std::vector<MaskedInput> inputs = {};

  void AddCandidate(const MaskedInput& input, size_t mask, const TokenScore& token,
                    v1::FillMaskResponse::Mask& result) const {
    v1::FillMaskResponse::Candidate& candidate = *result.add_candidates();
    candidate.set_score(token.score);
    candidate.set_token_id(token.id);
    candidate.set_token(tokenizer.Token(token.id));
    std::vector<int32_t> filled = input.ids;
    filled[mask] = token.id;
    candidate.set_sequence(tokenizer.Decode(filled, /*skip_special=*/false));
  }

  v1::FillMaskResponse operator()(const std::vector<EncoderOutput>& outputs) const {
    v1::FillMaskResponse response;
    for (size_t i = 0; i < inputs.size(); ++i) {
      v1::FillMaskResponse::Result& result = *response.add_results();
      for (size_t m = 0; m < inputs[i].masks.size(); ++m) {
        v1::FillMaskResponse::Mask& mask = *result.add_masks();
        for (const TokenScore& token : LikeliestTokens(Row(outputs[i], m), top_k, targets)) {
          AddCandidate(inputs[i], inputs[i].masks[m], token, mask);
        }
      }
    }
    return response;
  }
};

absl::StatusOr<int32_t> ReadTarget(const std::string& target, const WordPieceTokenizer& tokenizer) {
  if (const int32_t id = tokenizer.Find(target); id >= 0) return id;
  const std::vector<WordPiece> pieces = tokenizer.Tokenize(target);
  if (pieces.size() == 1 && pieces[0].id != tokenizer.unk()) return pieces[0].id;
  return FieldError("targets", fmt::format("'{}' is not one token of the vocabulary", target));
}

absl::StatusOr<std::vector<int32_t>> ReadTargets(const v1::FillMaskRequest& request,
                                                 const WordPieceTokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (const std::string& target : request.targets()) {
    HIPPODROME_ASSIGN_OR_RETURN(const int32_t id, ReadTarget(target, tokenizer));
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<int32_t> MaskRows(const EncodedText& text, int32_t mask) {
  std::vector<int32_t> rows;
  for (size_t i = 0; i < text.ids.size(); ++i) {
    if (text.ids[i] == mask) rows.push_back(static_cast<int32_t>(i));
  }
  return rows;
}

MaskedInput WithoutLayout(const EncodedText& text, int32_t mask) {
  MaskedInput input;
  for (size_t i = 0; i < text.ids.size(); ++i) {
    if (text.sequence[i] < 0) continue;
    if (text.ids[i] == mask) input.masks.push_back(input.ids.size());
    input.ids.push_back(text.ids[i]);
  }
  return input;
}

// What an answer takes is bounded before it is asked for.
absl::Status CheckMasks(int64_t masks, int64_t top_k, const RequestLimits& limits) {
  if (masks > limits.max_masks) {
    return FieldError("inputs", fmt::format("there are {} [MASK] in all, expected at most {}",
                                            masks, limits.max_masks));
  }
  if (top_k >= 1 && top_k <= limits.max_candidates / masks) return absl::OkStatus();
  return FieldError("top_k", fmt::format("{} is not in [1, {}], the range for {} [MASK]", top_k,
                                         limits.max_candidates / masks, masks));
}

}  // namespace

Answer<v1::FillMaskResponse> EncodingHandlers::FillMask(const v1::FillMaskRequest& request,
                                                        const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedEncoder> model,
                              models_.FindEncoder(request.model(), {EncoderHead::kMaskedLm}));
  HIPPODROME_ASSIGN_OR_RETURN(const WordPieceTokenizer* tokenizer, model->Tokenizer());
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<EncodedText> texts,
                              LayOutInputs(request.inputs(), request.truncate(), *model, limits_));
  Filler filler{*tokenizer, request.has_top_k() ? request.top_k() : kDefaultTopK};
  HIPPODROME_ASSIGN_OR_RETURN(filler.targets, ReadTargets(request, *tokenizer));
  std::vector<EncoderRequest> requests;
  int64_t masks = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<int32_t> rows = MaskRows(texts[i], tokenizer->mask());
    if (rows.empty()) {
      const bool cut = texts[i].dropped > 0;
      return FieldError(
          Place("inputs", static_cast<int64_t>(i)),
          cut ? "there is no [MASK] in what truncation leaves of it" : "there is no [MASK] in it");
    }
    masks += std::ssize(rows);
    filler.inputs.push_back(WithoutLayout(texts[i], tokenizer->mask()));
    requests.push_back(NewRequest(std::move(texts[i]), EncoderTask::kHead, std::move(rows)));
  }
  HIPPODROME_RETURN_IF_ERROR(CheckMasks(masks, filler.top_k, limits_));
  return SubmitEncoding<v1::FillMaskResponse>(*model, std::move(requests), caller,
                                              std::move(filler));
}

}  // namespace hippodrome
