// One pass of a batch through an encoder's layers, from host ids to the residual stream.
#ifndef HIPPODROME_ENGINE_PASSES_ENCODER_PASS_H_
#define HIPPODROME_ENGINE_PASSES_ENCODER_PASS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/models/bigs/bigs.h"
#include "engine/passes/index_matrix.h"

namespace hippodrome {

// B sequences of T tokens; all [B, T].
struct EncoderBatch {
  int64_t sequences = 0;  // B
  int64_t length = 0;     // T
  std::span<const int32_t> ids, types, mask;
};

// Holds the memory of passes of up to `max_rows` tokens, and of their answers: a batch that is not
// larger than those before allocates nothing. One thread at a time.
class EncoderPass {
 public:
  // `backend` and `model` must outlive it.
  EncoderPass(SequenceBackend& backend, const Bigs& model, int64_t max_rows);

  // Runs all layers. REQUIRES: values in range; B T <= max_rows.
  void Run(const EncoderBatch& batch);

  // Of the last Run(). The logits of the rows `rows` of the batch, b T + t, to `logits`, [rows,
  // LogitsPerAnswer()]. REQUIRES: a head that answers for tokens.
  void TokenLogits(std::span<const int32_t> rows, std::span<float> logits);
  // The logits of each sequence, [B, LogitsPerAnswer()]. REQUIRES: a head for sequences.
  void SequenceLogits(std::span<float> logits);
  // The mean of the residual stream over each sequence's mask, [B, d].
  void Means(std::span<float> means);

 private:
  // Memory for logits [rows, columns], the same columns in every call.
  Tensor Answers(int64_t rows, int64_t columns);

  SequenceBackend& backend_;
  const Bigs& model_;
  EncoderActivations activations_;
  HeadScratch scratch_;
  OwnedTensor ids_, types_, positions_;  // kI32 [1, max_rows]
  OwnedTensor picked_;                   // kI32 [1, rows of scratch_]
  OwnedTensor answers_, means_;          // of as many rows as were asked for so far
  IndexMatrix mask_, pooled_;            // [B, T], of the last Run(); pooled_ if padding is
  std::vector<int32_t> places_;
  int64_t rows_ = 0;  // of the last Run()
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_ENCODER_PASS_H_
