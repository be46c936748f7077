// Runs two backends side by side and names the first operation in which they differ.
#ifndef HIPPODROME_TOOLS_COMPARE_CHECKING_BACKEND_H_
#define HIPPODROME_TOOLS_COMPARE_CHECKING_BACKEND_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tools/compare/side_by_side.h"

namespace hippodrome {

// Every operation runs on both backends, each with its own states and pages, and is judged alone:
// before it, inputs become what `expected` computed (rounded, in both, where `actual` stores a
// narrower type), so that differences do not add up. What comes out of this backend is what
// `expected` computed. Both must outlive it.
class CheckingBackend final : public Backend {
 public:
  CheckingBackend(Backend& expected, Backend& actual) : expected_(expected), actual_(actual) {}

  const std::optional<Difference>& first_difference() const { return first_difference_; }
  int64_t operations() const { return operations_; }
  // The largest error of each operation in units of its tolerance.
  const std::map<std::string, double>& worst() const { return worst_; }

  // "cuda against cpu"
  std::string name() const override { return actual_.name() + " against " + expected_.name(); }
  PrefillShape prefill_shape() const override { return actual_.prefill_shape(); }
  int64_t StepRows(int64_t rows) const override { return actual_.StepRows(rows); }

  OwnedTensor NewTensor(int64_t rows, int64_t cols) override;
  OwnedTensor NewActivations(int64_t rows, int64_t cols, DType weights) override;
  OwnedTensor NewProductInputs(int64_t rows, int64_t cols, DType weights) override;
  OwnedTensor NewIndices(int64_t rows, int64_t cols) override;
  void Upload(std::span<const float> values, Tensor dst) override;
  void UploadIndices(std::span<const int32_t> values, Tensor dst) override;
  void Download(Tensor src, std::span<float> values) override;
  void DownloadIndices(Tensor src, std::span<int32_t> values) override;
  void Wait() override;

  std::unique_ptr<LinearWeights> PackLinear(std::span<const HostMatrix> parts,
                                            DType dtype) override;
  std::unique_ptr<H3Weights> PrepareH3(const H3Parameters& parameters, DType weights) override;
  std::unique_ptr<LongConvWeights> PrepareLongConv(const LongConvParameters& parameters,
                                                   int64_t longest, DType weights) override;
  std::unique_ptr<SsmWeights> PrepareSsm(const LongConvParameters& parameters,
                                         DType weights) override;
  std::unique_ptr<RecurrentState> NewLinearAttentionState(const LinearAttentionShape& shape,
                                                          int64_t slots) override;
  std::unique_ptr<RecurrentState> NewH3State(const H3Weights& weights, int64_t slots,
                                             DType type) override;
  bool HasH3States(DType type) const override {
    return expected_.HasH3States(type) && actual_.HasH3States(type);
  }
  std::unique_ptr<RecurrentState> NewSsmState(const SsmWeights& weights, int64_t slots) override;
  void ResetSlot(RecurrentState& state, int64_t slot) override;
  void CopySlot(RecurrentState& state, int64_t from, int64_t to) override;
  int64_t ExportSlot(const RecurrentState& state, int64_t slot, int64_t position,
                     std::span<const std::span<float>> arrays) override;
  void ImportSlot(RecurrentState& state, int64_t slot, int64_t position,
                  std::span<const std::span<const float>> arrays) override;
  std::unique_ptr<KeyValuePages> NewKeyValuePages(const AttentionShape& shape, int64_t pages,
                                                  int64_t page_tokens, DType weights) override;
  void ExportRows(const KeyValuePages& pages, std::span<const int32_t> page_table, int64_t first,
                  int64_t count, std::span<float> keys, std::span<float> values) override;
  void ImportRows(KeyValuePages& pages, std::span<const int32_t> page_table, int64_t first,
                  int64_t count, std::span<const float> keys,
                  std::span<const float> values) override;
  void CopyPage(KeyValuePages& pages, int32_t from, int32_t to) override;

  void Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                 const AddedRows& positions, Tensor y) override;
  void LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) override;
  void Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) override;
  void Activate(Tensor x, const Epilogue& epilogue, Tensor y) override;
  void H3Sequence(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                  const SequenceParts& parts, Tensor o) override;
  void H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state, Tensor slots,
              Tensor positions, Tensor o) override;
  void SsmSequence(const SsmWeights& weights, Tensor u, RecurrentState& state,
                   const SequenceParts& parts, Tensor y) override;
  void SsmStep(const SsmWeights& weights, Tensor u, RecurrentState& state, Tensor slots,
               Tensor y) override;
  void LinearAttentionSequence(const LinearAttentionShape& shape, Tensor qkv, RecurrentState& state,
                               const SequenceParts& parts, Tensor o) override;
  void LinearAttentionStep(const LinearAttentionShape& shape, Tensor qkv, RecurrentState& state,
                           Tensor slots, Tensor o) override;
  void AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                         KeyValuePages& pages, Tensor page_tables, const SequenceParts& parts,
                         Tensor o) override;
  void AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, KeyValuePages& pages,
                     Tensor page_tables, Tensor positions, Tensor o) override;
  void LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences, Direction direction,
                Tensor y) override;
  void BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                              Tensor o) override;
  void MeanPool(Tensor x, Tensor mask, Tensor y) override;
  void GatherRows(Tensor x, Tensor rows, Tensor y) override;
  void Sample(Tensor logits, int64_t vocab, Tensor rows, const LogitAdjustments& adjustments,
              Tensor tokens) override;
  void LogProbabilities(Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                        Tensor log_probabilities) override;

 private:
  // The actual backend's tensor for a view of ours.
  Tensor Twin(const Tensor& view) const { return twins_.Of(view); }
  AddedRows Twin(const AddedRows& added) const {
    return {.table = Twin(added.table), .indices = Twin(added.indices)};
  }
  std::vector<float> ExpectedValues(Tensor view);
  std::vector<float> ActualValues(Tensor view);

  // Makes an input the same in both backends.
  void Share(Tensor input);
  // Compares an output but for the rows of inert parts.
  void Check(const std::string& operation, Tensor output, const SequenceParts& parts = {});
  // Compares what is kept of a sequence.
  void CheckValues(const std::string& operation, std::span<const float> expected,
                   std::span<const float> actual);
  void CheckTokens(Tensor tokens);
  // The next operation, without a place in it.
  Difference Next(const std::string& operation);
  void NoteWorst(Difference where, std::span<const float> expected, std::span<const float> actual,
                 double tolerance);
  void Note(const Difference& difference, double error);

  Backend& expected_;
  Backend& actual_;
  TwinTensors twins_;
  int64_t operations_ = 0;
  int64_t norms_ = 0;  // done in this pass, which began with an embedding
  std::optional<Difference> first_difference_;
  std::map<std::string, double> worst_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMPARE_CHECKING_BACKEND_H_
