// What an encoder answers with: the layers behind the last residual stream.
#ifndef HIPPODROME_ENGINE_MODELS_BIGS_ENCODER_HEAD_H_
#define HIPPODROME_ENGINE_MODELS_BIGS_ENCODER_HEAD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/config/bigs_config.h"
#include "engine/models/encoder_norm.h"
#include "kernels/backend.h"

namespace hippodrome {

// Whether a head answers for single tokens, or for a sequence as a whole.
bool AnswersForTokens(EncoderHead head);
// Logits of one answer: V, labels, 2 or 1; 0 without a head.
int64_t LogitsPerAnswer(const BigsConfig& config);

// Scratch for up to `rows` answers.
class HeadScratch {
 public:
  HeadScratch(SequenceBackend& b, const BigsConfig& config, DType weights, int64_t rows)
      : picked_(b.NewActivations(rows, config.hidden_size, weights)),
        hidden_(b.NewTensor(rows, config.hidden_size)),
        normed_(b.NewActivations(rows, config.hidden_size, weights)) {}

  int64_t rows() const { return picked_.view.rows; }
  Tensor picked(int64_t rows) const { return picked_.view.Rows(0, rows); }  // [rows, d]
  Tensor hidden(int64_t rows) const { return hidden_.view.Rows(0, rows); }  // [rows, d]
  Tensor normed(int64_t rows) const { return normed_.view.Rows(0, rows); }  // [rows, d]

 private:
  OwnedTensor picked_, hidden_, normed_;
};

// Immutable once loaded.
class EncoderHeadLayers {
 public:
  // Reads what the head of `config` needs. Errors name the tensor.
  static absl::StatusOr<EncoderHeadLayers> Load(const WeightsReader& reader,
                                                const BigsConfig& config);

  // Logits of single tokens.  x: [n, d] the residual stream; rows: kI32 [1, m], which of its rows;
  // words: E [V, d], for a tied decoder; logits: [m, LogitsPerAnswer()]. REQUIRES:
  // AnswersForTokens(); m <= scratch.rows().
  void TokenLogits(SequenceBackend& b, Tensor x, Tensor rows, const LinearWeights& words,
                   const HeadScratch& scratch, Tensor logits) const;

  // Logits of whole sequences.  x: [B T, d]; mask: kI32 [B, T] of the tokens that are pooled;
  // logits: [B, LogitsPerAnswer()]. REQUIRES: a head that does not answer for tokens;
  // B <= scratch.rows().
  void SequenceLogits(SequenceBackend& b, Tensor x, Tensor mask, const HeadScratch& scratch,
                      Tensor logits) const;

  // The same up to the last product, whose matrix and bias are decoder() and bias(): what losses
  // are made of. In `scratch`, [m, d] and [B, d].
  Tensor TokenFeatures(SequenceBackend& b, Tensor x, Tensor rows, const HeadScratch& scratch) const;
  Tensor SequenceFeatures(SequenceBackend& b, Tensor x, Tensor mask,
                          const HeadScratch& scratch) const;
  const LinearWeights& decoder(const LinearWeights& words) const {
    return w_c_ == nullptr ? words : *w_c_;
  }
  Tensor bias() const { return b_c_; }

 private:
  absl::Status LoadMaskedLm(const WeightsReader& reader, const BigsConfig& config);
  absl::Status LoadPooler(const WeightsReader& reader, const BigsConfig& config);
  absl::Status LoadClassifier(const WeightsReader& reader, const BigsConfig& config,
                              const std::string& prefix);

  EncoderHead head_ = EncoderHead::kNone;
  // The transform of masked LM, or the pooler.
  std::unique_ptr<LinearWeights> w_t_;  // [d, d]
  OwnedTensor b_t_;
  Epilogue::Activation activation_ = Epilogue::Activation::kNone;
  EncoderNorm norm_;  // of masked LM
  // The decoder (null where it is tied) or classifier.
  std::unique_ptr<LinearWeights> w_c_;  // [logits, d]
  OwnedTensor b_c_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BIGS_ENCODER_HEAD_H_
