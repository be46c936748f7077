// The backend that runs on NVIDIA devices. Each operation lives in the file of its name, in the
// folder of its family.
#ifndef HIPPODROME_KERNELS_CUDA_CUDA_BACKEND_H_
#define HIPPODROME_KERNELS_CUDA_CUDA_BACKEND_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cuda/base/device.h"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/training_backend.h"

namespace hippodrome {

// Activations are bf16 beside bf16 weights, else f32. All work is asynchronous, on one stream.
//
// Row independence holds within the error bound. Two decisions are taken from what runs beside a
// row: Linear() takes another kernel, and may sum in another order, for another number of rows, and
// AttentionStep() cuts its sums by the width of the page tables. All other rows are computed alone,
// bit for bit. The same calls give the same bits in every run: nothing is chosen by timing.
class CudaBackend final : public TrainingBackend {
 public:
  // Binds the calling thread to it. Throws DeviceError when the device cannot be used.
  explicit CudaBackend(int device = 0)
      : device_(device), matmul_(cuda::MakeMatmulLibrary(device_)) {}

  cuda::Device& device() { return device_; }

  std::string name() const override { return "cuda"; }
  // Enough rows to keep every multiprocessor in large tiles of a product.
  PrefillShape prefill_shape() const override { return {.grid = 2048, .rows = 16384}; }
  // Powers of two, so that a handful of graphs serves every batch. With the size of its step a
  // sequence changes the kernels of its products, see Linear() of gemm/linear.h.
  int64_t StepRows(int64_t rows) const override;

  OwnedTensor NewTensor(int64_t rows, int64_t cols) override;
  OwnedTensor NewActivations(int64_t rows, int64_t cols, DType weights) override;
  OwnedTensor NewIndices(int64_t rows, int64_t cols) override;
  void Upload(std::span<const float> values, Tensor dst) override;
  void UploadIndices(std::span<const int32_t> values, Tensor dst) override;
  void Download(Tensor src, std::span<float> values) override;
  void DownloadIndices(Tensor src, std::span<int32_t> values) override;
  void Wait() override { device_.Finish("wait"); }

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
  void ExpectLinear(const LinearWeights& w) override;
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

  void BindThread() override { device_.BindThread(); }

  std::unique_ptr<LinearWeights> NewTrainedLinear(int64_t out, int64_t in, DType dtype) override;
  void PackTrainedLinear(std::span<const Tensor> parts, LinearWeights& w) override;
  void LinearBackward(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor dy,
                      const LinearGradients& gradients) override;
  void LinearCrossEntropy(Tensor x, const LinearWeights& w, Tensor bias, Tensor labels,
                          double scale, Tensor losses, const LinearGradients* gradients) override;

  std::unique_ptr<H3ConvolutionWeights> PrepareH3Convolution(const H3Parameters& parameters,
                                                             int64_t longest,
                                                             DType weights) override;
  void H3Convolution(const H3ConvolutionWeights& weights, Tensor qkv, int64_t sequences,
                     Tensor o) override;
  std::unique_ptr<H3Gradients> NewH3Gradients(const H3ConvolutionWeights& weights) override;
  void H3ConvolutionBackward(const H3ConvolutionWeights& weights, Tensor qkv, int64_t sequences,
                             Tensor d_o, Gradient dqkv, H3Gradients& sums) override;
  void TakeH3Gradients(const H3ConvolutionWeights& weights, const H3Parameters& parameters,
                       H3Gradients& sums, const H3ParameterGradients& gradients) override;

  std::unique_ptr<LongConvGradients> NewLongConvGradients(const LongConvWeights& weights) override;
  void LongConvBackward(const LongConvWeights& weights, Tensor u, int64_t sequences,
                        Direction direction, Tensor dy, Gradient du,
                        LongConvGradients& sums) override;
  void TakeLongConvGradients(const LongConvWeights& weights, const LongConvParameters& parameters,
                             LongConvGradients& sums,
                             const LongConvParameterGradients& gradients) override;

  void CausalAttention(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, int64_t sequences,
                       const AttentionDropout& dropout, Tensor o) override;
  void CausalAttentionBackward(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                               int64_t sequences, const AttentionDropout& dropout, Tensor d_o,
                               Gradient dqkv) override;
  void BidirectionalAttentionBackward(const AttentionShape& shape, Tensor qkv, Tensor mask,
                                      Tensor d_o, Gradient dqkv) override;

  void CausalLinearAttention(const LinearAttentionShape& shape, Tensor qkv, int64_t sequences,
                             Tensor o) override;
  void CausalLinearAttentionBackward(const LinearAttentionShape& shape, Tensor qkv,
                                     int64_t sequences, Tensor d_o, Gradient dqkv) override;

  void LayerNormBackward(Tensor x, Tensor gamma, double epsilon, Tensor dy, Gradient dx,
                         Tensor dgamma, Tensor dbeta) override;
  void ActivateBackward(Tensor x, const Epilogue& epilogue, Tensor dy, Gradient dx,
                        Gradient dgate) override;
  void ScatterRows(Tensor dy, Tensor indices, Tensor dtable) override;
  void MeanPoolBackward(Tensor mask, Tensor dy, Gradient dx) override;
  void Drop(double p, uint64_t seed, Tensor x) override;

  void Fill(float value, Tensor x) override;
  void Copy(Tensor x, Tensor y) override;
  void Add(Tensor x, Tensor y) override;
  double SumOfSquares(Tensor x) override;
  void AdamW(const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w) override;
  void MovingAverage(Tensor x, double decay, Tensor average) override;

  // The first time, runs `work`, so that scratch memory is there; the second time, captures it in a
  // CUDA graph; then launches the graph. A capture that fails does none of the work, and leaves the
  // stream as it was and the next call to capture again: what `work` throws is thrown, any other
  // failure at the next call that waits.
  void Replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work) override;

 private:
  // Over heads, of what is computed in double on processors: a step of training waits for it.
  HeadLoop HostLoop();

  cuda::Device device_;
  std::unique_ptr<cuda::MatmulLibrary> matmul_;
  std::unique_ptr<ThreadPool> host_threads_;  // once they are needed
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CUDA_CUDA_BACKEND_H_
