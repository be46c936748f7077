// The attention mixer of a hybrid: causal multi-head attention over cached rows.
#ifndef HIPPODROME_ENGINE_MODELS_H3_ATTENTION_H_
#define HIPPODROME_ENGINE_MODELS_H3_ATTENTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "engine/config/config.h"
#include "engine/models/activations.h"
#include "kernels/backend.h"

namespace hippodrome {

class AttentionMixer {
 public:
  // Reads the tensors under `prefix` ("backbone.layers.1.mixer.").
  static absl::StatusOr<AttentionMixer> Load(const WeightsReader& reader, const H3Config& config,
                                             const std::string& prefix);

  // a.r += mixer(LN(a.r)): ProjectIn(), then Sequences() or Steps() of each row, then ProjectOut().
  void ProjectIn(SequenceBackend& b, const NormParameters& norm, const ActivationRows& a) const;
  // Over consecutive tokens of the sequences of `parts`, row i of page_tables being of part i.
  void Sequences(SequenceBackend& b, const ActivationRows& a, KeyValuePages& pages,
                 Tensor page_tables, const SequenceParts& parts, int64_t window) const;
  // Row i being the token at positions[i] of the sequence of page_tables[i].
  void Steps(Backend& b, const ActivationRows& a, KeyValuePages& pages, Tensor page_tables,
             Tensor positions, int64_t window) const;
  void ProjectOut(SequenceBackend& b, const ActivationRows& a) const;

  std::unique_ptr<KeyValuePages> NewPages(SequenceBackend& b, int64_t pages,
                                          int64_t page_tokens) const {
    return b.NewKeyValuePages(shape_, pages, page_tokens, linear_dtype_);
  }

 private:
  AttentionShape Windowed(int64_t window) const {
    AttentionShape shape = shape_;
    shape.window = window;
    return shape;
  }

  AttentionShape shape_;
  DType linear_dtype_ = DType::kF32;
  std::unique_ptr<LinearWeights> w_qkv_;  // [3 d, d], rows q | k | v, head-major
  OwnedTensor b_qkv_;                     // [1, 3 d]
  OwnedTensor inv_freq_;                  // [1, rotary_dim / 2], empty without rotary
  std::unique_ptr<LinearWeights> w_o_;    // [d, d]
  OwnedTensor b_o_;                       // [1, d]
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_H3_ATTENTION_H_
