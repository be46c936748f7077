// One pass of a batch through an encoder's layers, from host ids to the residual stream.
#ifndef HIPPODROME_ENGINE_PASSES_ENCODER_PASS_H_
#define HIPPODROME_ENGINE_PASSES_ENCODER_PASS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/models/bigs/bigs.h"
#include "engine/passes/index_matrices.h"

namespace hippodrome {

// B sequences of T tokens; all [B, T].
struct EncoderBatch {
  int64_t sequences = 0;  // B
  int64_t length = 0;     // T
  std::span<const int32_t> ids;
  std::span<const int32_t> types;  // or empty: all 0
  std::span<const int32_t> mask;   // 1 where there is a token, 0 for padding; or empty: all 1
};

// What a pass has room for.
struct EncoderPassSize {
  int64_t rows = 0;          // tokens, padding included
  int64_t answers = 0;       // that the head makes at a time
  bool every_layer = false;  // what each layer computes stays there, for gradients
};

// The forward of serving, and of training where the backend records it. Holds the memory of passes
// and of their answers: a batch that is not larger than those before allocates nothing. One thread
// at a time.
class EncoderPass {
 public:
  // Runs `layer`, of whose inputs only `x` changes later, now and as often as it likes.
  using LayerRunner = std::function<void(Tensor x, const std::function<void()>& layer)>;

  // `backend` and `model` must outlive it.
  EncoderPass(SequenceBackend& backend, const Bigs& model, const EncoderPassSize& size);
  // For serving, of up to `max_rows` tokens.
  EncoderPass(SequenceBackend& backend, const Bigs& model, int64_t max_rows);

  // Runs all layers. REQUIRES: values in range; B T <= size.rows.
  void Run(const EncoderBatch& batch, const LayerRunner& run_layer = RunOnce);

  // Of the last Run(). The logits of the rows `rows` of the batch, b T + t, to `logits`, [rows,
  // LogitsPerAnswer()]. REQUIRES: a head that answers for tokens.
  void TokenLogits(std::span<const int32_t> rows, std::span<float> logits);
  // The logits of each sequence, [B, LogitsPerAnswer()]. REQUIRES: a head for sequences.
  void SequenceLogits(std::span<float> logits);
  // What these logits are made of, [rows, d] and [B, d], until the next call. REQUIRES: as above;
  // at most size.answers.
  Tensor TokenFeatures(std::span<const int32_t> rows);
  Tensor SequenceFeatures();
  // The mean of the residual stream over each sequence's mask, [B, d].
  void Means(std::span<float> means);
  // The residual stream itself, [B T, d].
  void States(std::span<float> states);

 private:
  static void RunOnce(Tensor, const std::function<void()>& layer) { layer(); }
  EncoderRows Rows(int64_t layer) const;
  Tensor x() const { return Rows(0).x; }
  Tensor pooled() const;
  // Memory for logits [rows, columns], the same columns in every call.
  Tensor Answers(int64_t rows, int64_t columns);

  SequenceBackend& backend_;
  const Bigs& model_;
  std::vector<EncoderActivations> activations_;  // of each layer, or of all
  HeadScratch scratch_;
  IndexMatrices indices_;        // of the last Run()
  OwnedTensor picked_;           // kI32 [1, size.answers]
  OwnedTensor answers_, means_;  // of as many rows as were asked for so far
  Tensor mask_, pooled_;         // [B, T], among the indices
  int64_t rows_ = 0;             // of the last Run()
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_ENCODER_PASS_H_
