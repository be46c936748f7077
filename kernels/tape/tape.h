// Records what a model computes, and computes gradients by going back over it.
#ifndef HIPPODROME_KERNELS_TAPE_TAPE_H_
#define HIPPODROME_KERNELS_TAPE_TAPE_H_

#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "kernels/tape/parameters.h"
#include "kernels/tape/tape_memory.h"
#include "kernels/tape/trained_handles.h"
#include "kernels/training_backend.h"

namespace hippodrome {

struct TapeOptions {
  int64_t longest = 0;                 // tokens of a sequence, at most
  int32_t padding_id = -1;             // a token whose embedding is not trained by looking it up
  std::array<double, 2> dropout = {};  // probability at each DropoutSite
  double attention_dropout = 0;        // of the weights of AttentionSequence()
};

// A backend over which a model is loaded and run as for serving. The model's weights must come from
// a WeightsSource that keeps() the host copies of `parameters`; whole sequences go through its
// prefill from position 0 and leave nothing in their states.
//
//   tape.Begin(seed); <model forward>; tape.LinearCrossEntropy(...); tape.Backward();
//   ... more micro-batches; tape.CollectGradients(); <optimizer on parameters>; tape.Update();
//
// Not thread-safe. `backend` and `parameters` must outlive it, and it the model.
class Tape final : public SequenceBackend {
 public:
  Tape(TrainingBackend& backend, Parameters& parameters, const TapeOptions& options);

  // ---- Training --------------------------------------------------------------------------------

  // Starts to record, from nothing. `seed` decides what dropout drops.
  void Begin(uint64_t seed);
  // Runs `part`, whose only input that later changes is `carried`, without keeping what its
  // backward needs: that runs it again.
  void Recompute(Tensor carried, const std::function<void()>& part);
  // As TrainingBackend's, the last operation of a forward; its gradients are scaled by `scale`.
  // While nothing is recorded it only computes losses.
  void LinearCrossEntropy(Tensor x, const LinearWeights& w, Tensor bias, Tensor labels,
                          double scale, Tensor losses);
  // d loss / d x, row by row, for a loss that is computed on the host. While nothing is recorded it
  // does nothing.
  void SetLossGradient(Tensor x, std::span<const float> dx);
  // Goes back over the record, adds to the gradients of the parameters and stops recording.
  void Backward();

  // Completes Parameter::gradient of all parameters that were read.
  void CollectGradients();
  // From now on Backward() completes gradients itself, and calls `call` with each parameter as soon
  // as the record adds no more to its gradient: while it still goes back over what came before.
  // Parameters that the record does not know are not told.
  void OnCompleteGradient(std::function<void(const Parameter&)> call);
  void ZeroGradients();
  // Prepares all weights again from the parameters' present values.
  void Update();

  // ---- SequenceBackend -------------------------------------------------------------------------

  std::string name() const override { return backend_.name(); }
  OwnedTensor NewTensor(int64_t rows, int64_t cols) override;
  OwnedTensor NewActivations(int64_t rows, int64_t cols, DType weights) override;
  OwnedTensor NewIndices(int64_t rows, int64_t cols) override;
  // Values that are a parameter's make `dst` follow it.
  void Upload(std::span<const float> values, Tensor dst) override;
  void UploadIndices(std::span<const int32_t> values, Tensor dst) override;
  void Download(Tensor src, std::span<float> values) override;
  void DownloadIndices(Tensor src, std::span<int32_t> values) override;
  void Wait() override { backend_.Wait(); }

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

  void Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                 const AddedRows& positions, Tensor y) override;
  void LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) override;
  void Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) override;
  void Activate(Tensor x, const Epilogue& epilogue, Tensor y) override;
  void H3Sequence(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                  const SequenceParts& parts, Tensor o) override;
  void SsmSequence(const SsmWeights& weights, Tensor u, RecurrentState& state,
                   const SequenceParts& parts, Tensor y) override;
  void LinearAttentionSequence(const LinearAttentionShape& shape, Tensor qkv, RecurrentState& state,
                               const SequenceParts& parts, Tensor o) override;
  void AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                         KeyValuePages& pages, Tensor page_tables, const SequenceParts& parts,
                         Tensor o) override;
  void LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences, Direction direction,
                Tensor y) override;
  void BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                              Tensor o) override;
  void MeanPool(Tensor x, Tensor mask, Tensor y) override;
  void GatherRows(Tensor x, Tensor rows, Tensor y) override;
  void Dropout(DropoutSite site, Tensor x) override;

 private:
  enum class Mode : uint8_t {
    kOff,         // nothing is kept and nothing dropped
    kRecording,   // for Backward()
    kRecomputed,  // a part that will run again: nothing is kept
  };
  using Undo = std::function<void()>;

  bool recording() const { return mode_ == Mode::kRecording; }
  OwnedTensor Known(OwnedTensor matrix);
  // A copy of `ids` with the padding id as -1.
  OwnedTensor TrainedIds(Tensor ids);
  // Of what is dropped next.
  uint64_t NextDropoutSeed();
  // LongConv() with the kernels of `w`.
  void Convolve(const std::shared_ptr<TrainedLongConv>& w, Tensor u, int64_t sequences,
                Direction direction, Tensor y);
  // Makes the gradients that `record` asks for, from its end.
  void GoBack(std::vector<Undo>& record);

  // What an operation that is given `w` and `rows` adds to the gradients of; those among `rows`
  // that are no parameters are left out. It is expected to, once, however often it runs.
  using Handles = std::vector<TrainedHandle*>;
  Handles Expect(TrainedHandle* w, std::initializer_list<Tensor> rows);
  // Records an operation that adds to the gradients of `adds`.
  void Record(Handles adds, Undo undo);
  void Complete(const Handles& added);

  TrainingBackend& backend_;
  Parameters& parameters_;
  TapeOptions options_;
  TapeMemory memory_;
  std::vector<std::shared_ptr<TrainedHandle>> trained_;
  std::vector<TrainedRows*> rows_;  // of these
  std::function<void(const Parameter&)> on_complete_;
  Mode mode_ = Mode::kOff;
  bool again_ = false;  // what runs has run before, without being kept
  std::vector<Undo> record_;
  uint64_t seed_ = 0;
  uint64_t drops_ = 0;  // since Begin()
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_TAPE_TAPE_H_
