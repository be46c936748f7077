// A backend that passes every call on to another; subclasses override what they change.
#ifndef HIPPODROME_TOOLS_COMPARE_FORWARDING_BACKEND_H_
#define HIPPODROME_TOOLS_COMPARE_FORWARDING_BACKEND_H_

#include <memory>
#include <string>

#include "kernels/backend.h"

namespace hippodrome {

// Replay() and LayerNormLinear() stay those of Backend, so that every operation passes through
// here. `inner` must outlive this.
class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(Backend& inner) : inner_(inner) {}

  std::string name() const override { return inner_.name(); }
  PrefillShape prefill_shape() const override { return inner_.prefill_shape(); }
  int64_t StepRows(int64_t rows) const override { return inner_.StepRows(rows); }

  OwnedTensor NewTensor(int64_t rows, int64_t cols) override {
    return inner_.NewTensor(rows, cols);
  }
  OwnedTensor NewActivations(int64_t rows, int64_t cols, DType weights) override {
    return inner_.NewActivations(rows, cols, weights);
  }
  OwnedTensor NewProductInputs(int64_t rows, int64_t cols, DType weights) override {
    return inner_.NewProductInputs(rows, cols, weights);
  }
  OwnedTensor NewIndices(int64_t rows, int64_t cols) override {
    return inner_.NewIndices(rows, cols);
  }
  void Upload(std::span<const float> values, Tensor dst) override { inner_.Upload(values, dst); }
  void UploadIndices(std::span<const int32_t> values, Tensor dst) override {
    inner_.UploadIndices(values, dst);
  }
  void Download(Tensor src, std::span<float> values) override { inner_.Download(src, values); }
  void DownloadIndices(Tensor src, std::span<int32_t> values) override {
    inner_.DownloadIndices(src, values);
  }
  void Wait() override { inner_.Wait(); }

  std::unique_ptr<LinearWeights> PackLinear(std::span<const HostMatrix> parts,
                                            DType dtype) override {
    return inner_.PackLinear(parts, dtype);
  }
  std::unique_ptr<H3Weights> PrepareH3(const H3Parameters& parameters, DType weights) override {
    return inner_.PrepareH3(parameters, weights);
  }
  std::unique_ptr<LongConvWeights> PrepareLongConv(const LongConvParameters& parameters,
                                                   int64_t longest, DType weights) override {
    return inner_.PrepareLongConv(parameters, longest, weights);
  }
  std::unique_ptr<SsmWeights> PrepareSsm(const LongConvParameters& parameters,
                                         DType weights) override {
    return inner_.PrepareSsm(parameters, weights);
  }
  std::unique_ptr<RecurrentState> NewSsmState(const SsmWeights& weights, int64_t slots) override {
    return inner_.NewSsmState(weights, slots);
  }
  std::unique_ptr<RecurrentState> NewLinearAttentionState(const LinearAttentionShape& shape,
                                                          int64_t slots) override {
    return inner_.NewLinearAttentionState(shape, slots);
  }
  std::unique_ptr<RecurrentState> NewH3State(const H3Weights& weights, int64_t slots,
                                             DType type) override {
    return inner_.NewH3State(weights, slots, type);
  }
  bool HasH3States(DType type) const override { return inner_.HasH3States(type); }
  void ResetSlot(RecurrentState& state, int64_t slot) override { inner_.ResetSlot(state, slot); }
  void CopySlot(RecurrentState& state, int64_t from, int64_t to) override {
    inner_.CopySlot(state, from, to);
  }
  int64_t ExportSlot(const RecurrentState& state, int64_t slot, int64_t position,
                     std::span<const std::span<float>> arrays) override {
    return inner_.ExportSlot(state, slot, position, arrays);
  }
  void ImportSlot(RecurrentState& state, int64_t slot, int64_t position,
                  std::span<const std::span<const float>> arrays) override {
    inner_.ImportSlot(state, slot, position, arrays);
  }
  std::unique_ptr<KeyValuePages> NewKeyValuePages(const AttentionShape& shape, int64_t pages,
                                                  int64_t page_tokens, DType weights) override {
    return inner_.NewKeyValuePages(shape, pages, page_tokens, weights);
  }
  void ExportRows(const KeyValuePages& pages, std::span<const int32_t> page_table, int64_t first,
                  int64_t count, std::span<float> keys, std::span<float> values) override {
    inner_.ExportRows(pages, page_table, first, count, keys, values);
  }
  void ImportRows(KeyValuePages& pages, std::span<const int32_t> page_table, int64_t first,
                  int64_t count, std::span<const float> keys,
                  std::span<const float> values) override {
    inner_.ImportRows(pages, page_table, first, count, keys, values);
  }
  void CopyPage(KeyValuePages& pages, int32_t from, int32_t to) override {
    inner_.CopyPage(pages, from, to);
  }

  void Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                 const AddedRows& positions, Tensor y) override {
    inner_.Embedding(table, ids, types, positions, y);
  }
  void LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) override {
    inner_.LayerNorm(x, gamma, beta, epsilon, y);
  }
  void ExpectLinear(const LinearWeights& w) override { inner_.ExpectLinear(w); }
  void Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) override {
    inner_.Linear(x, w, epilogue, y);
  }
  void Activate(Tensor x, const Epilogue& epilogue, Tensor y) override {
    inner_.Activate(x, epilogue, y);
  }
  void H3Sequence(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                  const SequenceParts& parts, Tensor o) override {
    inner_.H3Sequence(weights, qkv, state, parts, o);
  }
  void H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state, Tensor slots,
              Tensor positions, Tensor o) override {
    inner_.H3Step(weights, qkv, state, slots, positions, o);
  }
  void ExpectH3Step(const H3Weights& weights, const RecurrentState& state, Tensor slots,
                    Tensor positions) override {
    inner_.ExpectH3Step(weights, state, slots, positions);
  }
  void SsmSequence(const SsmWeights& weights, Tensor u, RecurrentState& state,
                   const SequenceParts& parts, Tensor y) override {
    inner_.SsmSequence(weights, u, state, parts, y);
  }
  void SsmStep(const SsmWeights& weights, Tensor u, RecurrentState& state, Tensor slots,
               Tensor y) override {
    inner_.SsmStep(weights, u, state, slots, y);
  }
  void LinearAttentionSequence(const LinearAttentionShape& shape, Tensor qkv, RecurrentState& state,
                               const SequenceParts& parts, Tensor o) override {
    inner_.LinearAttentionSequence(shape, qkv, state, parts, o);
  }
  void LinearAttentionStep(const LinearAttentionShape& shape, Tensor qkv, RecurrentState& state,
                           Tensor slots, Tensor o) override {
    inner_.LinearAttentionStep(shape, qkv, state, slots, o);
  }
  void AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                         KeyValuePages& pages, Tensor page_tables, const SequenceParts& parts,
                         Tensor o) override {
    inner_.AttentionSequence(shape, qkv, inv_freq, pages, page_tables, parts, o);
  }
  void AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, KeyValuePages& pages,
                     Tensor page_tables, Tensor positions, Tensor o) override {
    inner_.AttentionStep(shape, qkv, inv_freq, pages, page_tables, positions, o);
  }
  void LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences, Direction direction,
                Tensor y) override {
    inner_.LongConv(weights, u, sequences, direction, y);
  }
  void BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                              Tensor o) override {
    inner_.BidirectionalAttention(shape, qkv, mask, o);
  }
  void MeanPool(Tensor x, Tensor mask, Tensor y) override { inner_.MeanPool(x, mask, y); }
  void GatherRows(Tensor x, Tensor rows, Tensor y) override { inner_.GatherRows(x, rows, y); }
  void Sample(Tensor logits, int64_t vocab, Tensor rows, const LogitAdjustments& adjustments,
              Tensor tokens) override {
    inner_.Sample(logits, vocab, rows, adjustments, tokens);
  }
  void LogProbabilities(Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                        Tensor log_probabilities) override {
    inner_.LogProbabilities(logits, vocab, tokens, likeliest, log_probabilities);
  }

 private:
  Backend& inner_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMPARE_FORWARDING_BACKEND_H_
