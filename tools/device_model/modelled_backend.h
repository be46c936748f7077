// A device that is not there: it takes the time that counts predict, and computes nothing.
#ifndef HIPPODROME_TOOLS_DEVICE_MODEL_MODELLED_BACKEND_H_
#define HIPPODROME_TOOLS_DEVICE_MODEL_MODELLED_BACKEND_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/device_yardsticks.h"
#include "tools/device_model/kernel_units.h"
#include "tools/device_model/launch_time.h"

namespace hippodrome {

// Of one kernel.
struct ModelledLaunches {
  int64_t launches = 0;
  double blocks = 0;
};

// For each operation adds the times of the launches that CudaBackend would make for it, with
// weights of bf16, int8 or int4, as if each began when the one before has ended. Launches inside
// Replay() start sooner from its second time on. No memory is behind tensors but for indices;
// tokens that are chosen are 0. An operation that hybrid H3 and BiGS models do not call throws
// DeviceError.
class ModelledBackend final : public Backend {
 public:
  explicit ModelledBackend(const DeviceRates& rates) : rates_(rates) {}

  const DeviceRates& rates() const { return rates_; }
  // Predicted seconds since the beginning, and by kernel and what bound it, as of LaunchTime:
  // "h3_scan (instructions)"; "launches" and "copies of indices" beside.
  double seconds() const { return seconds_; }
  const std::map<std::string, double>& seconds_by_bound() const { return seconds_by_bound_; }

  // Of our kernels, by their names in kernel_units.h.
  const std::map<std::string, ModelledLaunches>& launches() const { return launches_; }

  std::string name() const override { return "model"; }
  PrefillShape prefill_shape() const override;
  int64_t StepRows(int64_t rows) const override;

  OwnedTensor NewTensor(int64_t rows, int64_t cols) override;
  OwnedTensor NewActivations(int64_t rows, int64_t cols, DType weights) override;
  OwnedTensor NewIndices(int64_t rows, int64_t cols) override;
  void Upload(std::span<const float> values, Tensor dst) override;
  void UploadIndices(std::span<const int32_t> values, Tensor dst) override;
  void Download(Tensor src, std::span<float> values) override;
  void DownloadIndices(Tensor src, std::span<int32_t> values) override;

  std::unique_ptr<LinearWeights> PackLinear(std::span<const HostMatrix> parts,
                                            DType dtype) override;
  std::unique_ptr<H3Weights> PrepareH3(const H3Parameters& parameters, DType weights) override;
  std::unique_ptr<LongConvWeights> PrepareLongConv(const LongConvParameters& parameters,
                                                   int64_t longest, DType weights) override;
  std::unique_ptr<SsmWeights> PrepareSsm(const LongConvParameters& parameters,
                                         DType weights) override;
  std::unique_ptr<RecurrentState> NewH3State(const H3Weights& weights, int64_t slots,
                                             DType type) override;
  std::unique_ptr<RecurrentState> NewSsmState(const SsmWeights& weights, int64_t slots) override;
  std::unique_ptr<RecurrentState> NewLinearAttentionState(const LinearAttentionShape& shape,
                                                          int64_t slots) override;
  std::unique_ptr<KeyValuePages> NewKeyValuePages(const AttentionShape& shape, int64_t pages,
                                                  int64_t page_tokens, DType weights) override;
  void ResetSlot(RecurrentState& state, int64_t slot) override;
  void CopySlot(RecurrentState& state, int64_t from, int64_t to) override;
  int64_t ExportSlot(const RecurrentState& state, int64_t slot, int64_t position,
                     std::span<const std::span<float>> arrays) override;
  void ImportSlot(RecurrentState& state, int64_t slot, int64_t position,
                  std::span<const std::span<const float>> arrays) override;
  void ExportRows(const KeyValuePages& pages, std::span<const int32_t> page_table, int64_t first,
                  int64_t count, std::span<float> keys, std::span<float> values) override;
  void ImportRows(KeyValuePages& pages, std::span<const int32_t> page_table, int64_t first,
                  int64_t count, std::span<const float> keys,
                  std::span<const float> values) override;
  void CopyPage(KeyValuePages& pages, int32_t from, int32_t to) override;

  void Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                 const AddedRows& positions, Tensor y) override;
  void LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) override;
  void ExpectLinear(const LinearWeights& w) override { expected_ = w.bytes(); }
  void LayerNormLinear(Tensor x, const NormParameters& norm, Tensor u, const LinearWeights& w,
                       const Epilogue& epilogue, Tensor y) override;
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
  void Replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work) override;

 private:
  int64_t StepBlocks(int64_t columns) const;
  void QuantizedProduct(Tensor x, const LinearWeights& w, DType weights, int64_t bytes);
  void LibraryProduct(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y,
                      int64_t bytes);
  void UploadParts(const SequenceParts& parts);
  // The last launch, of `blocks` blocks, asks L2 for what is expected.
  void AskAhead(int64_t blocks);
  // Of a product of the library: bytes that came while nothing else wanted them.
  double TakeAhead();
  // Of `units` units in `blocks` blocks; what must move through DRAM is `dram_bytes`.
  void Launch(std::string_view kernel, int64_t units, int64_t blocks, int64_t dram_bytes);
  void Launch(const KernelUnits& kernel, int64_t units, int64_t blocks, int64_t dram_bytes);
  void Take(std::string_view kernel, const LaunchCounts& counts);
  void Add(double seconds, std::string_view bound_by);

  const DeviceRates rates_;
  double seconds_ = 0;
  std::map<std::string, double> seconds_by_bound_;
  std::map<std::string, ModelledLaunches> launches_;
  bool replays_ = false;
  bool follows_ours_ = false;     // the next launch, a kernel of ours
  std::vector<std::byte> parts_;  // the last that were uploaded
  double unused_dram_ = 0;        // seconds of the last launch in which DRAM had nothing to do
  int64_t expected_ = 0;          // bytes that the product behind the next operation reads
  int64_t asked_ = 0;             // of them, by the last launch
};

// Of the gated convolution, which counts predict; cuFFT's is not known.
std::unique_ptr<DeviceYardsticks> MakeModelledYardsticks(const DeviceRates& rates);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_DEVICE_MODEL_MODELLED_BACKEND_H_
