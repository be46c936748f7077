// Runs batches of inputs through a BiGS encoder and its head.
#ifndef HIPPODROME_ENGINE_ENCODER_H_
#define HIPPODROME_ENGINE_ENCODER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/models/bigs/bigs.h"
#include "engine/passes/encoder_pass.h"

namespace hippodrome {

struct EncoderOptions {
  // Overrides the model's pad_to: tokens in [1, max_position_embeddings], or 0 for no padding.
  std::optional<int64_t> pad_to;
  // Tokens of one Run(), padding included; one input may always run alone. At least 1.
  int64_t max_batch_tokens = 4096;
};

enum class EncoderTask : uint8_t {
  kHead,             // what the model's head answers
  kEmbedding,        // the mean of the last layer's output over the input's tokens
  kTokenEmbeddings,  // the last layer's output for single tokens
};

// One input, laid out ([CLS] .. [SEP]) and not padded.
struct EncoderRequest {
  std::vector<int32_t> ids;    // each in [0, vocab_size)
  std::vector<int32_t> types;  // each in [0, type_vocab_size); empty: all 0
  EncoderTask task = EncoderTask::kHead;
  // The tokens that are asked for, as indices into `ids`, of kTokenEmbeddings and of heads that
  // answer for single tokens (masked LM, token classification, question answering); else empty.
  std::vector<int32_t> rows;
};

// Raw logits [rows, cols], an embedding [1, d], or those of tokens [request.rows, d].
//   masked LM:                [request.rows, V]
//   token classification:     [request.rows, labels]
//   question answering:       [request.rows, 2], start and end
//   sequence classification:  [1, labels]
//   multiple choice:          [1, 1]
struct EncoderOutput {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<float> values;
};

// The constants may be read on any thread; Run() belongs to the thread that owns the backend.
class Encoder {
 public:
  // `backend` and `model` must outlive the encoder. kInvalidArgument for options out of range.
  static absl::StatusOr<std::unique_ptr<Encoder>> Create(Backend& backend, const Bigs& model,
                                                         const EncoderOptions& options);

  const BigsConfig& config() const { return model_.config(); }
  // The longest input: what inputs are padded to, or max_position_embeddings.
  int64_t max_tokens() const { return max_tokens_; }
  // Tokens that an input of `tokens` takes in a batch.
  int64_t PaddedLength(int64_t tokens) const { return pads_ ? max_tokens_ : tokens; }
  int64_t max_batch_tokens() const { return max_batch_tokens_; }

  // The one check of a request. kInvalidArgument naming what is wrong; kOutOfRange for an input
  // that is too long, with both lengths; kFailedPrecondition for a task that the model has no head
  // for.
  absl::Status Validate(const EncoderRequest& request) const;

  // The outputs in order. An output depends on its request alone; on processors bit for bit.
  // REQUIRES: valid requests, at least one, of one PaddedLength(); together at most
  // max_batch_tokens(), or only one. Throws DeviceError.
  std::vector<EncoderOutput> Run(std::span<const EncoderRequest* const> requests);

 private:
  Encoder(Backend& backend, const Bigs& model, int64_t pad_to, int64_t max_batch_tokens);

  // The requests as one batch of equal lengths.
  void RunLayers(std::span<const EncoderRequest* const> requests, int64_t length);
  void Answer(std::span<const EncoderRequest* const> requests, int64_t length,
              std::vector<EncoderOutput>& outputs);
  void Embed(std::span<const EncoderRequest* const> requests, std::vector<EncoderOutput>& outputs);
  void EmbedTokens(std::span<const EncoderRequest* const> requests, int64_t length,
                   std::vector<EncoderOutput>& outputs);

  const Bigs& model_;
  const int64_t max_batch_tokens_;
  const bool pads_;
  const int64_t max_tokens_;
  EncoderPass pass_;
  std::vector<int32_t> ids_, types_, mask_;  // [B, T] of a batch
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_ENCODER_H_
