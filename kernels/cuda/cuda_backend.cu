#include "kernels/cuda/cuda_backend.h"

#include <bit>
#include <cassert>
#include <vector>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/dense_attention.h"
#include "kernels/cuda/attention/key_value_pages.h"
#include "kernels/cuda/attention/linear_attention.h"
#include "kernels/cuda/base/elementwise.h"
#include "kernels/cuda/base/recurrent_slots.h"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/conv/long_conv.h"
#include "kernels/cuda/conv/long_conv_weights.h"
#include "kernels/cuda/gemm/activate.h"
#include "kernels/cuda/gemm/linear_backward.h"
#include "kernels/cuda/gemm/packed_weights.h"
#include "kernels/cuda/gemm/trained_weights.h"
#include "kernels/cuda/h3/h3_convolution.h"
#include "kernels/cuda/h3/h3_exchange.h"
#include "kernels/cuda/h3/h3_prefill.h"
#include "kernels/cuda/h3/h3_state.h"
#include "kernels/cuda/h3/h3_step.h"
#include "kernels/cuda/h3/h3_weights.h"
#include "kernels/cuda/rows/dropout.h"
#include "kernels/cuda/rows/embedding.h"
#include "kernels/cuda/rows/gather_rows.h"
#include "kernels/cuda/rows/layer_norm.h"
#include "kernels/cuda/rows/mean_pool.h"
#include "kernels/cuda/rows/sample.h"
#include "kernels/cuda/rows/scatter_rows.h"
#include "kernels/cuda/ssm/ssm_sequence.h"
#include "kernels/cuda/ssm/ssm_weights.h"
#include "kernels/cuda/training/adamw.h"
#include "kernels/cuda/training/cross_entropy.h"
#include "kernels/quantized_group.h"
#include "kernels/ssm/h3_ssm.h"
#include "kernels/ssm/long_conv_ssm.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the casts.
const cuda::PackedWeights& Packed(const LinearWeights& weights) {
  return static_cast<const cuda::PackedWeights&>(weights);
}
const cuda::TrainedWeights& Trained(const LinearWeights& weights) {
  return static_cast<const cuda::TrainedWeights&>(weights);
}
const cuda::H3PrefillWeights& Recurrent(const H3Weights& weights) {
  return static_cast<const cuda::H3PrefillWeights&>(weights);
}
const cuda::H3ConvolutionKernels& Convolved(const H3ConvolutionWeights& weights) {
  return static_cast<const cuda::H3ConvolutionKernels&>(weights);
}
const cuda::SsmConstants& Recurrent(const SsmWeights& weights) {
  return static_cast<const cuda::SsmConstants&>(weights);
}
cuda::H3Slots& Slots(RecurrentState& state) { return static_cast<cuda::H3Slots&>(state); }
const cuda::H3Slots& Slots(const RecurrentState& state) {
  return static_cast<const cuda::H3Slots&>(state);
}
// Null for states of H3 layers.
cuda::RecurrentSlots* PlainSlots(RecurrentState& state) {
  return dynamic_cast<cuda::RecurrentSlots*>(&state);
}
cuda::H3KernelGradients& Sums(H3Gradients& sums) {
  return static_cast<cuda::H3KernelGradients&>(sums);
}
const cuda::LongConvKernels& Kernels(const LongConvWeights& weights) {
  return static_cast<const cuda::LongConvKernels&>(weights);
}
cuda::LongConvKernelGradients& Sums(LongConvGradients& sums) {
  return static_cast<cuda::LongConvKernelGradients&>(sums);
}
cuda::PagedRows& Paged(KeyValuePages& pages) { return static_cast<cuda::PagedRows&>(pages); }
const cuda::PagedRows& Paged(const KeyValuePages& pages) {
  return static_cast<const cuda::PagedRows&>(pages);
}

DType ActivationsBeside(DType weights) {
  return weights == DType::kF32 ? DType::kF32 : DType::kBF16;
}

std::vector<float> Floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

HeadLoop CudaBackend::HostLoop() {
  if (host_threads_ == nullptr) host_threads_ = std::make_unique<ThreadPool>();
  return host_threads_->Loop();
}

int64_t CudaBackend::StepRows(int64_t rows) const {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
}

OwnedTensor CudaBackend::NewTensor(int64_t rows, int64_t cols) {
  return cuda::NewMatrix(device_, rows, cols, DType::kF32);
}

OwnedTensor CudaBackend::NewActivations(int64_t rows, int64_t cols, DType weights) {
  return cuda::NewMatrix(device_, rows, cols, ActivationsBeside(weights));
}

OwnedTensor CudaBackend::NewIndices(int64_t rows, int64_t cols) {
  return cuda::NewMatrix(device_, rows, cols, DType::kI32);
}

void CudaBackend::Upload(std::span<const float> values, Tensor dst) {
  cuda::CopyIn(device_, values, dst);
}

void CudaBackend::UploadIndices(std::span<const int32_t> values, Tensor dst) {
  cuda::CopyIn(device_, values, dst);
}

void CudaBackend::Download(Tensor src, std::span<float> values) {
  cuda::CopyOut(device_, src, values);
}

void CudaBackend::DownloadIndices(Tensor src, std::span<int32_t> values) {
  cuda::CopyOut(device_, src, values);
}

std::unique_ptr<LinearWeights> CudaBackend::PackLinear(std::span<const HostMatrix> parts,
                                                       DType dtype) {
  return cuda::PackLinear(device_, parts, dtype);
}

std::unique_ptr<KeyValuePages> CudaBackend::NewKeyValuePages(const AttentionShape& shape,
                                                             int64_t pages, int64_t page_tokens,
                                                             DType weights) {
  return std::make_unique<cuda::PagedRows>(device_, shape, pages, page_tokens,
                                           KeyValueType(weights));
}

void CudaBackend::Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                            const AddedRows& positions, Tensor y) {
  cuda::Embedding(device_, Packed(table), ids, types, positions, y);
}

void CudaBackend::LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  cuda::LayerNorm(device_, x, gamma, beta, epsilon, y);
}

void CudaBackend::ExpectLinear(const LinearWeights& w) {
  device_.Expect(Packed(w).data(), w.bytes());
}

void CudaBackend::Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
  device_.ExpectNothing();
  cuda::Linear(device_, matmul_.get(), {x, Packed(w), epilogue, y});
}

void CudaBackend::LayerNormLinear(Tensor x, const NormParameters& norm, Tensor u,
                                  const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
  const cuda::LinearCall call = {u, Packed(w), epilogue, y};
  if (!cuda::CanNormalizeInside(device_, x, norm, call)) {
    return Backend::LayerNormLinear(x, norm, u, w, epilogue, y);
  }
  device_.ExpectNothing();
  cuda::LayerNormLinearStep(device_, x, norm, call);
}

void CudaBackend::Activate(Tensor x, const Epilogue& epilogue, Tensor y) {
  cuda::Activate(device_, x, epilogue, y);
}

void CudaBackend::AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                    KeyValuePages& pages, Tensor page_tables,
                                    const SequenceParts& parts, Tensor o) {
  cuda::AttentionSequence(device_,
                          {shape, qkv, inv_freq, Paged(pages), page_tables, parts.parts, o});
}

void CudaBackend::AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                KeyValuePages& pages, Tensor page_tables, Tensor positions,
                                Tensor o) {
  cuda::AttentionStep(device_, {shape, qkv, inv_freq, Paged(pages), page_tables, positions, o});
}

void CudaBackend::Sample(Tensor logits, int64_t vocab, Tensor rows,
                         const LogitAdjustments& adjustments, Tensor tokens) {
  cuda::Sample(device_, logits, vocab, rows, adjustments, tokens);
}

void CudaBackend::LogProbabilities(Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                                   Tensor log_probabilities) {
  cuda::LogProbabilities(device_, logits, vocab, tokens, likeliest, log_probabilities);
}

std::unique_ptr<H3Weights> CudaBackend::PrepareH3(const H3Parameters& parameters, DType weights) {
  return std::make_unique<cuda::H3PrefillWeights>(device_, parameters, ActivationsBeside(weights));
}

std::unique_ptr<RecurrentState> CudaBackend::NewH3State(const H3Weights& weights, int64_t slots,
                                                        [[maybe_unused]] DType type) {
  assert(HasH3States(type));
  return std::make_unique<cuda::H3Slots>(device_, Recurrent(weights), slots);
}

void CudaBackend::ResetSlot(RecurrentState& state, int64_t slot) {
  if (auto* plain = PlainSlots(state)) return plain->Reset(device_, slot);
  Slots(state).Reset(device_, slot);
}

void CudaBackend::CopySlot(RecurrentState& state, int64_t from, int64_t to) {
  if (auto* plain = PlainSlots(state)) return plain->Copy(device_, from, to);
  Slots(state).Copy(device_, from, to);
}

int64_t CudaBackend::ExportSlot(const RecurrentState& state, int64_t slot, int64_t position,
                                std::span<const std::span<float>> arrays) {
  if (const auto* plain = dynamic_cast<const cuda::RecurrentSlots*>(&state)) {
    plain->Export(device_, slot, arrays);
  } else {
    cuda::ExportSlot(device_, Slots(state), slot, position, arrays);
  }
  return 0;
}

void CudaBackend::ImportSlot(RecurrentState& state, int64_t slot, int64_t position,
                             std::span<const std::span<const float>> arrays) {
  if (auto* plain = PlainSlots(state)) return plain->Import(device_, slot, arrays);
  cuda::ImportSlot(device_, Slots(state), slot, position, arrays);
}

void CudaBackend::ExportRows(const KeyValuePages& pages, std::span<const int32_t> page_table,
                             int64_t first, int64_t count, std::span<float> keys,
                             std::span<float> values) {
  cuda::ExportRows(device_, {Paged(pages), page_table, first, count}, keys, values);
}

void CudaBackend::ImportRows(KeyValuePages& pages, std::span<const int32_t> page_table,
                             int64_t first, int64_t count, std::span<const float> keys,
                             std::span<const float> values) {
  cuda::ImportRows(device_, {Paged(pages), page_table, first, count}, keys, values);
}

void CudaBackend::CopyPage(KeyValuePages& pages, int32_t from, int32_t to) {
  Paged(pages).CopyPage(device_, from, to);
}

void CudaBackend::H3Sequence(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                             const SequenceParts& parts, Tensor o) {
  cuda::H3Sequence(device_,
                   {Recurrent(weights), qkv, Slots(state), parts.parts, parts.captures, o});
}

void CudaBackend::H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state, Tensor slots,
                         Tensor positions, Tensor o) {
  cuda::H3Step(device_, {Recurrent(weights), qkv, Slots(state), slots, positions, o});
}

std::unique_ptr<SsmWeights> CudaBackend::PrepareSsm(const LongConvParameters& parameters,
                                                    DType weights) {
  return std::make_unique<cuda::SsmConstants>(device_, parameters, ActivationsBeside(weights));
}

std::unique_ptr<RecurrentState> CudaBackend::NewSsmState(const SsmWeights& weights, int64_t slots) {
  const cuda::SsmView& ssm = Recurrent(weights).view();
  return std::make_unique<cuda::RecurrentSlots>(device_, SsmStateArrays(ssm.channels, ssm.modes),
                                                slots);
}

void CudaBackend::SsmSequence(const SsmWeights& weights, Tensor u, RecurrentState& state,
                              const SequenceParts& parts, Tensor y) {
  cuda::SsmSequence(device_, Recurrent(weights), u, *PlainSlots(state), parts, y);
}

void CudaBackend::SsmStep(const SsmWeights& weights, Tensor u, RecurrentState& state, Tensor slots,
                          Tensor y) {
  cuda::SsmStep(device_, Recurrent(weights), u, *PlainSlots(state), slots, y);
}

std::unique_ptr<RecurrentState> CudaBackend::NewLinearAttentionState(
    const LinearAttentionShape& shape, int64_t slots) {
  return std::make_unique<cuda::RecurrentSlots>(device_, LinearAttentionStateArrays(shape), slots);
}

void CudaBackend::LinearAttentionSequence(const LinearAttentionShape& shape, Tensor qkv,
                                          RecurrentState& state, const SequenceParts& parts,
                                          Tensor o) {
  cuda::LinearAttentionSequence(device_, shape, qkv, *PlainSlots(state), parts, o);
}

void CudaBackend::LinearAttentionStep(const LinearAttentionShape& shape, Tensor qkv,
                                      RecurrentState& state, Tensor slots, Tensor o) {
  cuda::LinearAttentionStep(device_, shape, qkv, *PlainSlots(state), slots, o);
}

std::unique_ptr<LongConvWeights> CudaBackend::PrepareLongConv(const LongConvParameters& parameters,
                                                              int64_t longest, DType weights) {
  return std::make_unique<cuda::LongConvKernels>(device_, parameters, longest,
                                                 ActivationsBeside(weights), HostLoop());
}

void CudaBackend::LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences,
                           Direction direction, Tensor y) {
  cuda::LongConv(device_, {Kernels(weights), u, sequences, direction, y});
}

void CudaBackend::BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                                         Tensor o) {
  cuda::BidirectionalAttention(device_, {shape, qkv, mask, o});
}

void CudaBackend::MeanPool(Tensor x, Tensor mask, Tensor y) { cuda::MeanPool(device_, x, mask, y); }

void CudaBackend::GatherRows(Tensor x, Tensor rows, Tensor y) {
  cuda::GatherRows(device_, x, rows, y);
}

std::unique_ptr<LinearWeights> CudaBackend::NewTrainedLinear(int64_t out, int64_t in, DType dtype) {
  return std::make_unique<cuda::TrainedWeights>(device_, out, in, dtype);
}

void CudaBackend::PackTrainedLinear(std::span<const Tensor> parts, LinearWeights& w) {
  cuda::PackTrainedLinear(device_, parts, Trained(w));
}

void CudaBackend::LinearBackward(Tensor x, const LinearWeights& w, const Epilogue& epilogue,
                                 Tensor dy, const LinearGradients& gradients) {
  cuda::LinearBackward(device_, matmul_.get(), {x, Trained(w), epilogue, dy, gradients});
}

void CudaBackend::LinearCrossEntropy(Tensor x, const LinearWeights& w, Tensor bias, Tensor labels,
                                     double scale, Tensor losses,
                                     const LinearGradients* gradients) {
  cuda::LinearCrossEntropy(device_, matmul_.get(),
                           {x, Trained(w), bias, labels, scale, losses, gradients});
}

std::unique_ptr<H3ConvolutionWeights> CudaBackend::PrepareH3Convolution(
    const H3Parameters& parameters, int64_t longest, DType weights) {
  return std::make_unique<cuda::H3ConvolutionKernels>(device_, parameters, longest,
                                                      ActivationsBeside(weights), HostLoop());
}

void CudaBackend::H3Convolution(const H3ConvolutionWeights& weights, Tensor qkv, int64_t sequences,
                                Tensor o) {
  cuda::H3Convolution(device_, Convolved(weights), qkv, sequences, o);
}

std::unique_ptr<H3Gradients> CudaBackend::NewH3Gradients(const H3ConvolutionWeights& weights) {
  return std::make_unique<cuda::H3KernelGradients>(device_, Convolved(weights));
}

void CudaBackend::H3ConvolutionBackward(const H3ConvolutionWeights& weights, Tensor qkv,
                                        int64_t sequences, Tensor d_o, Gradient dqkv,
                                        H3Gradients& sums) {
  cuda::H3ConvolutionBackward(device_, Convolved(weights), qkv, sequences, d_o, dqkv, Sums(sums));
}

void CudaBackend::TakeH3Gradients(const H3ConvolutionWeights& weights,
                                  const H3Parameters& parameters, H3Gradients& sums,
                                  const H3ParameterGradients& gradients) {
  cuda::H3KernelGradients& taken = Sums(sums);
  const HeadLoop loop = HostLoop();
  H3TapGradient(parameters, Floats(taken.taps.Take(device_)), gradients, loop);
  H3KernelGradient(parameters, Floats(taken.kernels.Take(device_)), Convolved(weights).longest(),
                   gradients, loop);
}

std::unique_ptr<LongConvGradients> CudaBackend::NewLongConvGradients(
    const LongConvWeights& weights) {
  return std::make_unique<cuda::LongConvKernelGradients>(device_, Kernels(weights));
}

void CudaBackend::LongConvBackward(const LongConvWeights& weights, Tensor u, int64_t sequences,
                                   Direction direction, Tensor dy, Gradient du,
                                   LongConvGradients& sums) {
  cuda::LongConvBackward(device_, {Kernels(weights), u, sequences, direction, dy, du}, Sums(sums));
}

void CudaBackend::TakeLongConvGradients(const LongConvWeights& weights,
                                        const LongConvParameters& parameters,
                                        LongConvGradients& sums,
                                        const LongConvParameterGradients& gradients) {
  LongConvKernelGradient(parameters, Sums(sums).kernels.Take(device_), weights.longest(), gradients,
                         HostLoop());
}

void CudaBackend::CausalAttention(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                  int64_t sequences, const AttentionDropout& dropout, Tensor o) {
  cuda::AttentionForward(device_, {shape, qkv, inv_freq, /*mask=*/{}, sequences, dropout}, o);
}

void CudaBackend::CausalAttentionBackward(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                          int64_t sequences, const AttentionDropout& dropout,
                                          Tensor d_o, Gradient dqkv) {
  cuda::AttentionBackward(device_, {shape, qkv, inv_freq, /*mask=*/{}, sequences, dropout}, d_o,
                          dqkv);
}

void CudaBackend::BidirectionalAttentionBackward(const AttentionShape& shape, Tensor qkv,
                                                 Tensor mask, Tensor d_o, Gradient dqkv) {
  cuda::AttentionBackward(device_, {shape, qkv, /*inv_freq=*/{}, mask, mask.rows}, d_o, dqkv);
}

void CudaBackend::CausalLinearAttention(const LinearAttentionShape& shape, Tensor qkv,
                                        int64_t sequences, Tensor o) {
  cuda::CausalLinearAttention(device_, shape, qkv, sequences, o);
}

void CudaBackend::CausalLinearAttentionBackward(const LinearAttentionShape& shape, Tensor qkv,
                                                int64_t sequences, Tensor d_o, Gradient dqkv) {
  cuda::CausalLinearAttentionBackward(device_, shape, qkv, sequences, d_o, dqkv);
}

void CudaBackend::LayerNormBackward(Tensor x, Tensor gamma, double epsilon, Tensor dy, Gradient dx,
                                    Tensor dgamma, Tensor dbeta) {
  cuda::LayerNormBackward(device_, x, gamma, epsilon, dy, dx, dgamma, dbeta);
}

void CudaBackend::ActivateBackward(Tensor x, const Epilogue& epilogue, Tensor dy, Gradient dx,
                                   Gradient dgate) {
  cuda::ActivateBackward(device_, x, epilogue, dy, dx, dgate);
}

void CudaBackend::ScatterRows(Tensor dy, Tensor indices, Tensor dtable) {
  cuda::ScatterRows(device_, dy, indices, dtable);
}

void CudaBackend::MeanPoolBackward(Tensor mask, Tensor dy, Gradient dx) {
  cuda::MeanPoolBackward(device_, mask, dy, dx);
}

void CudaBackend::Drop(double p, uint64_t seed, Tensor x) { cuda::Drop(device_, p, seed, x); }

void CudaBackend::Fill(float value, Tensor x) { cuda::Fill(device_, value, x); }

void CudaBackend::Copy(Tensor x, Tensor y) { cuda::Copy(device_, x, y); }

void CudaBackend::Add(Tensor x, Tensor y) { cuda::Add(device_, x, y); }

double CudaBackend::SumOfSquares(Tensor x) { return cuda::SumOfSquares(device_, x); }

void CudaBackend::AdamW(const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w) {
  cuda::AdamW(device_, step, gradient, m, v, w);
}

void CudaBackend::MovingAverage(Tensor x, double decay, Tensor average) {
  cuda::MovingAverage(device_, x, decay, average);
}

}  // namespace hippodrome
