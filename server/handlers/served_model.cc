#include "server/handlers/served_model.h"

#include <utility>

#include "engine/base/check_range.h"
#include "engine/base/status.h"
#include "engine/tokenizer/encode_pair.h"
#include "engine/tokenizer/utf8_stream.h"

namespace hippodrome {
namespace {

absl::Status NoTokenizer(const v1::Model& info) {
  return FailedPrecondition("model '" + info.name() + "' has no tokenizer: use token ids");
}

}  // namespace

// ---- Decoders -----------------------------------------------------------------------------------

ServedDecoder::ServedDecoder(v1::Model info, DecoderParts parts, const BatcherOptions& options,
                             Metrics& metrics)
    : ServedModel(std::move(info)),
      parts_(std::move(parts)),
      metrics_(metrics.registry(), this->info().name()),
      batcher_(*parts_.engine, parts_.tokenizer.get(), options, metrics_) {}

absl::StatusOr<const BpeTokenizer*> ServedDecoder::Tokenizer() const {
  if (parts_.tokenizer == nullptr) return NoTokenizer(info());
  return parts_.tokenizer.get();
}

absl::StatusOr<std::vector<int32_t>> ServedDecoder::Tokenize(const std::string& text,
                                                             bool /*special*/) const {
  HIPPODROME_ASSIGN_OR_RETURN(const BpeTokenizer* tokenizer, Tokenizer());
  const int32_t end = tokenizer->end_of_text();
  if (end >= 0 && text == tokenizer->Bytes(end)) return std::vector<int32_t>{end};
  return tokenizer->Encode(text);
}

// GPT-2's only special token stands on both sides of a text.
absl::StatusOr<TokenizerInfo> ServedDecoder::DescribeTokenizer() const {
  HIPPODROME_ASSIGN_OR_RETURN(const BpeTokenizer* tokenizer, Tokenizer());
  TokenizerInfo tokens{.eos_token_id = tokenizer->end_of_text(),
                       .vocab_size = info().vocab_size(),
                       .max_tokens = info().max_positions()};
  if (tokens.eos_token_id >= 0) tokens.eos_token = tokenizer->Bytes(tokens.eos_token_id);
  tokens.bos_token = tokens.eos_token;
  return tokens;
}

absl::StatusOr<std::string> ServedDecoder::Detokenize(std::span<const int32_t> ids) const {
  HIPPODROME_ASSIGN_OR_RETURN(const BpeTokenizer* tokenizer, Tokenizer());
  HIPPODROME_RETURN_IF_ERROR(CheckTokenIds("tokens", ids, info().vocab_size()));
  Utf8Stream characters;
  std::string text = characters.Append(tokenizer->Decode(ids));
  return text + characters.Finish();
}

// Prompts are cut into short pieces.
ServedModel::Clock::duration ServedDecoder::longest_turn() const { return std::chrono::seconds(5); }

// ---- Encoders -----------------------------------------------------------------------------------

ServedEncoder::ServedEncoder(v1::Model info, EncoderParts parts, const EncodingOptions& options,
                             Metrics& metrics)
    : ServedModel(std::move(info)),
      parts_(std::move(parts)),
      metrics_(metrics.registry(), this->info().name()),
      batcher_(*parts_.engine, options, metrics_) {}

absl::StatusOr<const WordPieceTokenizer*> ServedEncoder::Tokenizer() const {
  if (parts_.tokenizer == nullptr) return NoTokenizer(info());
  return parts_.tokenizer.get();
}

absl::StatusOr<std::vector<int32_t>> ServedEncoder::Tokenize(const std::string& text,
                                                             bool special) const {
  HIPPODROME_ASSIGN_OR_RETURN(const WordPieceTokenizer* tokenizer, Tokenizer());
  if (!special) {
    std::vector<int32_t> ids;
    for (const WordPiece& piece : tokenizer->Tokenize(text)) ids.push_back(piece.id);
    return ids;
  }
  return EncodePair(*tokenizer, tokenizer->Tokenize(text), {}, false, 0, Truncation::kNone).ids;
}

absl::StatusOr<TokenizerInfo> ServedEncoder::DescribeTokenizer() const {
  HIPPODROME_ASSIGN_OR_RETURN(const WordPieceTokenizer* tokenizer, Tokenizer());
  return TokenizerInfo{.eos_token = tokenizer->Token(tokenizer->sep()),
                       .bos_token = tokenizer->Token(tokenizer->cls()),
                       .pad_token = tokenizer->Token(tokenizer->pad()),
                       .eos_token_id = tokenizer->sep(),
                       .vocab_size = info().vocab_size(),
                       .max_tokens = info().max_positions()};
}

absl::StatusOr<std::string> ServedEncoder::Detokenize(std::span<const int32_t> ids) const {
  HIPPODROME_ASSIGN_OR_RETURN(const WordPieceTokenizer* tokenizer, Tokenizer());
  HIPPODROME_RETURN_IF_ERROR(CheckTokenIds("tokens", ids, info().vocab_size()));
  return tokenizer->Decode(ids, /*skip_special=*/false);
}

// A batch is one call of the engine, and takes seconds where a large model runs on few cores.
ServedModel::Clock::duration ServedEncoder::longest_turn() const { return std::chrono::minutes(1); }

std::unique_ptr<ServedModel> NewServedModel(ModelParts parts, const BatcherOptions& generation,
                                            const EncodingOptions& encoding, Metrics& metrics) {
  std::unique_ptr<ServedModel> served;
  if (auto* decoder = std::get_if<DecoderParts>(&parts.family)) {
    served = std::make_unique<ServedDecoder>(std::move(parts.info), std::move(*decoder), generation,
                                             metrics);
  } else {
    served = std::make_unique<ServedEncoder>(
        std::move(parts.info), std::get<EncoderParts>(std::move(parts.family)), encoding, metrics);
  }
  served->set_origin(std::move(parts.origin));
  return served;
}

}  // namespace hippodrome
