#include "kernels/cpu/cpu_backend.h"

#include <cassert>
#include <utility>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/dense_attention.h"
#include "kernels/cpu/attention/key_value_pages.h"
#include "kernels/cpu/attention/linear_attention.h"
#include "kernels/cpu/base/elementwise.h"
#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/conv/long_conv.h"
#include "kernels/cpu/conv/long_conv_weights.h"
#include "kernels/cpu/gemm/activate.h"
#include "kernels/cpu/gemm/linear.h"
#include "kernels/cpu/gemm/linear_backward.h"
#include "kernels/cpu/gemm/packed_weights.h"
#include "kernels/cpu/gemm/product_inputs.h"
#include "kernels/cpu/gemm/trained_weights.h"
#include "kernels/cpu/h3/h3_convolution.h"
#include "kernels/cpu/h3/h3_convolution_weights.h"
#include "kernels/cpu/h3/h3_prefill.h"
#include "kernels/cpu/h3/h3_state.h"
#include "kernels/cpu/h3/h3_step.h"
#include "kernels/cpu/h3/h3_weights.h"
#include "kernels/cpu/rows/dropout.h"
#include "kernels/cpu/rows/gather.h"
#include "kernels/cpu/rows/layer_norm.h"
#include "kernels/cpu/rows/mean_pool.h"
#include "kernels/cpu/rows/sample.h"
#include "kernels/cpu/ssm/ssm_sequence.h"
#include "kernels/cpu/ssm/ssm_state.h"
#include "kernels/cpu/ssm/ssm_weights.h"
#include "kernels/cpu/training/adamw.h"
#include "kernels/cpu/training/cross_entropy.h"
#include "kernels/ssm/h3_ssm.h"
#include "kernels/ssm/long_conv_ssm.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the casts.
const cpu::PackedWeights& Packed(const LinearWeights& weights) {
  return static_cast<const cpu::PackedWeights&>(weights);
}
const cpu::TrainedWeights& Trained(const LinearWeights& weights) {
  return static_cast<const cpu::TrainedWeights&>(weights);
}
const cpu::H3PrefillWeights& Recurrent(const H3Weights& weights) {
  return static_cast<const cpu::H3PrefillWeights&>(weights);
}
const cpu::H3ConvolutionKernels& Convolved(const H3ConvolutionWeights& weights) {
  return static_cast<const cpu::H3ConvolutionKernels&>(weights);
}
const cpu::SsmConstants& Recurrent(const SsmWeights& weights) {
  return static_cast<const cpu::SsmConstants&>(weights);
}
cpu::RecurrentSlots& Slots(RecurrentState& state) {
  return static_cast<cpu::RecurrentSlots&>(state);
}
cpu::H3Slots& H3SlotsOf(RecurrentState& state) { return static_cast<cpu::H3Slots&>(state); }
const cpu::H3Slots& H3SlotsOf(const RecurrentState& state) {
  return static_cast<const cpu::H3Slots&>(state);
}
cpu::SsmSlots& SsmSlotsOf(RecurrentState& state) { return static_cast<cpu::SsmSlots&>(state); }
cpu::LinearAttentionSlots& LinearAttentionSlotsOf(RecurrentState& state) {
  return static_cast<cpu::LinearAttentionSlots&>(state);
}
const cpu::LongConvKernels& Kernels(const LongConvWeights& weights) {
  return static_cast<const cpu::LongConvKernels&>(weights);
}
cpu::PagedRows& Paged(KeyValuePages& pages) { return static_cast<cpu::PagedRows&>(pages); }

}  // namespace

OwnedTensor CpuBackend::NewTensor(int64_t rows, int64_t cols) {
  return cpu::NewMatrix(rows, cols, DType::kF32);
}

OwnedTensor CpuBackend::NewActivations(int64_t rows, int64_t cols, DType /*weights*/) {
  return NewTensor(rows, cols);
}

OwnedTensor CpuBackend::NewProductInputs(int64_t rows, int64_t cols, DType weights) {
  return cpu::NewProductInputs(rows, cols, weights);
}

OwnedTensor CpuBackend::NewIndices(int64_t rows, int64_t cols) {
  return cpu::NewMatrix(rows, cols, DType::kI32);
}

void CpuBackend::Upload(std::span<const float> values, Tensor dst) {
  dst.dtype == DType::kI8 ? cpu::CopyGroupsIn(values, dst) : cpu::CopyIn(values, dst);
}

void CpuBackend::UploadIndices(std::span<const int32_t> values, Tensor dst) {
  cpu::CopyIn(values, dst);
}

void CpuBackend::Download(Tensor src, std::span<float> values) {
  src.dtype == DType::kI8 ? cpu::CopyGroupsOut(src, values) : cpu::CopyOut(src, values);
}

void CpuBackend::DownloadIndices(Tensor src, std::span<int32_t> values) {
  cpu::CopyOut(src, values);
}

std::unique_ptr<LinearWeights> CpuBackend::PackLinear(std::span<const HostMatrix> parts,
                                                      DType dtype) {
  return cpu::PackLinear(Turn(), parts, dtype);
}

std::unique_ptr<KeyValuePages> CpuBackend::NewKeyValuePages(const AttentionShape& shape,
                                                            int64_t pages, int64_t page_tokens,
                                                            DType weights) {
  return std::make_unique<cpu::PagedRows>(shape, pages, page_tokens, KeyValueType(weights));
}

void CpuBackend::Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                           const AddedRows& positions, Tensor y) {
  cpu::Embedding(Turn(), Packed(table), ids, types, positions, y);
}

void CpuBackend::LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  cpu::LayerNorm(Turn(), x, gamma, beta, epsilon, y);
}

void CpuBackend::Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
  cpu::Linear(Turn(), x, Packed(w), epilogue, y, cpu::DotKernel::kBest,
              std::exchange(expected_reads_, {}));
}

void CpuBackend::Activate(Tensor x, const Epilogue& epilogue, Tensor y) {
  cpu::Activate(Turn(), x, epilogue, y);
}

void CpuBackend::AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                   KeyValuePages& pages, Tensor page_tables,
                                   const SequenceParts& parts, Tensor o) {
  cpu::AttentionSequence(Turn(), shape, qkv, inv_freq, Paged(pages), page_tables, parts, o);
}

void CpuBackend::AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                               KeyValuePages& pages, Tensor page_tables, Tensor positions,
                               Tensor o) {
  cpu::AttentionStep(Turn(), shape, qkv, inv_freq, Paged(pages), page_tables, positions, o);
}

void CpuBackend::Sample(Tensor logits, int64_t vocab, Tensor rows,
                        const LogitAdjustments& adjustments, Tensor tokens) {
  assert(rows.rows == logits.rows && rows.cols == kSamplingColumns && rows.stride == rows.cols);
  const auto* first = reinterpret_cast<const SamplingRow*>(cpu::I32Row(rows, 0));
  cpu::Sample(Turn(), logits, vocab, {first, static_cast<size_t>(rows.rows)}, adjustments, tokens);
}

void CpuBackend::LogProbabilities(Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                                  Tensor log_probabilities) {
  cpu::LogProbabilities(Turn(), logits, vocab, tokens, likeliest, log_probabilities);
}

std::unique_ptr<H3Weights> CpuBackend::PrepareH3(const H3Parameters& parameters,
                                                 DType /*weights*/) {
  return std::make_unique<cpu::H3PrefillWeights>(Turn(), parameters);
}

std::unique_ptr<RecurrentState> CpuBackend::NewH3State(const H3Weights& weights, int64_t slots,
                                                       DType type) {
  return std::make_unique<cpu::H3Slots>(Recurrent(weights), slots, type);
}

void CpuBackend::ResetSlot(RecurrentState& state, int64_t slot) { Slots(state).Reset(slot); }

void CpuBackend::CopySlot(RecurrentState& state, int64_t from, int64_t to) {
  Slots(state).Copy(Turn(), from, to);
}

int64_t CpuBackend::ExportSlot(const RecurrentState& state, int64_t slot, int64_t position,
                               std::span<const std::span<float>> arrays) {
  return static_cast<const cpu::RecurrentSlots&>(state).Export(slot, position, arrays);
}

void CpuBackend::ImportSlot(RecurrentState& state, int64_t slot, int64_t position,
                            std::span<const std::span<const float>> arrays) {
  Slots(state).Import(slot, position, arrays);
}

void CpuBackend::ExportRows(const KeyValuePages& pages, std::span<const int32_t> page_table,
                            int64_t first, int64_t count, std::span<float> keys,
                            std::span<float> values) {
  static_cast<const cpu::PagedRows&>(pages).Export(page_table.data(), first, count, keys.data(),
                                                   values.data());
}

void CpuBackend::ImportRows(KeyValuePages& pages, std::span<const int32_t> page_table,
                            int64_t first, int64_t count, std::span<const float> keys,
                            std::span<const float> values) {
  Paged(pages).Import(page_table.data(), first, count, keys.data(), values.data());
}

void CpuBackend::CopyPage(KeyValuePages& pages, int32_t from, int32_t to) {
  Paged(pages).Copy(from, to);
}

void CpuBackend::H3Sequence(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                            const SequenceParts& parts, Tensor o) {
  cpu::H3Sequence(Turn(), Recurrent(weights), qkv, H3SlotsOf(state), parts, o);
}

void CpuBackend::H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state, Tensor slots,
                        Tensor positions, Tensor o) {
  cpu::H3Step(Turn(), Recurrent(weights), qkv, H3SlotsOf(state), slots, positions, o);
}

void CpuBackend::ExpectH3Step(const H3Weights& weights, const RecurrentState& state, Tensor slots,
                              Tensor positions) {
  expected_reads_ = cpu::ReadsOfH3Step(Recurrent(weights), H3SlotsOf(state), slots, positions);
}

std::unique_ptr<SsmWeights> CpuBackend::PrepareSsm(const LongConvParameters& parameters,
                                                   DType /*weights*/) {
  return std::make_unique<cpu::SsmConstants>(parameters, Turn().pool().Loop());
}

std::unique_ptr<RecurrentState> CpuBackend::NewSsmState(const SsmWeights& weights, int64_t slots) {
  return std::make_unique<cpu::SsmSlots>(Recurrent(weights).layout(), slots);
}

void CpuBackend::SsmSequence(const SsmWeights& weights, Tensor u, RecurrentState& state,
                             const SequenceParts& parts, Tensor y) {
  cpu::SsmSequence(Turn(), Recurrent(weights), u, SsmSlotsOf(state), parts, y);
}

void CpuBackend::SsmStep(const SsmWeights& weights, Tensor u, RecurrentState& state, Tensor slots,
                         Tensor y) {
  cpu::SsmStep(Turn(), Recurrent(weights), u, SsmSlotsOf(state), slots, y);
}

std::unique_ptr<RecurrentState> CpuBackend::NewLinearAttentionState(
    const LinearAttentionShape& shape, int64_t slots) {
  return std::make_unique<cpu::LinearAttentionSlots>(shape, slots);
}

void CpuBackend::LinearAttentionSequence(const LinearAttentionShape& shape, Tensor qkv,
                                         RecurrentState& state, const SequenceParts& parts,
                                         Tensor o) {
  cpu::LinearAttentionSequence(Turn(), shape, qkv, LinearAttentionSlotsOf(state), parts, o);
}

void CpuBackend::LinearAttentionStep(const LinearAttentionShape& shape, Tensor qkv,
                                     RecurrentState& state, Tensor slots, Tensor o) {
  cpu::LinearAttentionStep(Turn(), shape, qkv, LinearAttentionSlotsOf(state), slots, o);
}

std::unique_ptr<LongConvWeights> CpuBackend::PrepareLongConv(const LongConvParameters& parameters,
                                                             int64_t longest, DType /*weights*/) {
  return std::make_unique<cpu::LongConvKernels>(parameters, longest, Turn().pool().Loop());
}

void CpuBackend::LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences,
                          Direction direction, Tensor y) {
  cpu::ConvolveSequences(Turn(), plans_, Kernels(weights), u, sequences, direction, y);
}

void CpuBackend::BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                                        Tensor o) {
  cpu::BidirectionalAttention(Turn(), shape, qkv, mask, o);
}

void CpuBackend::MeanPool(Tensor x, Tensor mask, Tensor y) { cpu::MeanPool(Turn(), x, mask, y); }

void CpuBackend::GatherRows(Tensor x, Tensor rows, Tensor y) {
  cpu::GatherRows(Turn(), x, rows, y);
}

std::unique_ptr<LinearWeights> CpuBackend::NewTrainedLinear(int64_t out, int64_t in, DType dtype) {
  return std::make_unique<cpu::TrainedWeights>(out, in, dtype);
}

void CpuBackend::PackTrainedLinear(std::span<const Tensor> parts, LinearWeights& w) {
  cpu::PackTrainedLinear(Turn(), parts, Trained(w));
}

void CpuBackend::LinearBackward(Tensor x, const LinearWeights& w, const Epilogue& epilogue,
                                Tensor dy, const LinearGradients& gradients) {
  cpu::LinearBackward(Turn(), x, Trained(w), epilogue, dy, gradients);
}

void CpuBackend::LinearCrossEntropy(Tensor x, const LinearWeights& w, Tensor bias, Tensor labels,
                                    double scale, Tensor losses, const LinearGradients* gradients) {
  cpu::LinearCrossEntropy(Turn(), x, Trained(w), bias, labels, scale, losses, gradients);
}

std::unique_ptr<H3ConvolutionWeights> CpuBackend::PrepareH3Convolution(
    const H3Parameters& parameters, int64_t longest, DType /*weights*/) {
  return std::make_unique<cpu::H3ConvolutionKernels>(Turn(), parameters, longest);
}

void CpuBackend::H3Convolution(const H3ConvolutionWeights& weights, Tensor qkv, int64_t sequences,
                               Tensor o) {
  cpu::H3Convolution(Turn(), plans_, Convolved(weights), qkv, sequences, o);
}

std::unique_ptr<H3Gradients> CpuBackend::NewH3Gradients(const H3ConvolutionWeights& weights) {
  return std::make_unique<cpu::H3KernelGradients>(Convolved(weights).layout());
}

void CpuBackend::H3ConvolutionBackward(const H3ConvolutionWeights& weights, Tensor qkv,
                                       int64_t sequences, Tensor d_o, Gradient dqkv,
                                       H3Gradients& sums) {
  cpu::H3ConvolutionBackward(Turn(), plans_, Convolved(weights), qkv, sequences, d_o, dqkv,
                             static_cast<cpu::H3KernelGradients&>(sums));
}

void CpuBackend::TakeH3Gradients(const H3ConvolutionWeights& weights,
                                 const H3Parameters& parameters, H3Gradients& sums,
                                 const H3ParameterGradients& gradients) {
  auto& taken = static_cast<cpu::H3KernelGradients&>(sums);
  const ThreadPool::Turn turn(client_);
  const HeadLoop loop = turn.pool().Loop();
  H3TapGradient(parameters, taken.Taps(), gradients, loop);
  H3KernelGradient(parameters, taken.Kernels(), Convolved(weights).layout().longest, gradients,
                   loop);
  taken.Zero();
}

std::unique_ptr<LongConvGradients> CpuBackend::NewLongConvGradients(
    const LongConvWeights& weights) {
  return std::make_unique<cpu::LongConvKernelGradients>(Kernels(weights).tiling(),
                                                        weights.longest());
}

void CpuBackend::LongConvBackward(const LongConvWeights& weights, Tensor u, int64_t sequences,
                                  Direction direction, Tensor dy, Gradient du,
                                  LongConvGradients& sums) {
  cpu::ConvolveSequencesBackward(Turn(), plans_, Kernels(weights), u, sequences, direction, dy, du,
                                 static_cast<cpu::LongConvKernelGradients&>(sums));
}

void CpuBackend::TakeLongConvGradients(const LongConvWeights& weights,
                                       const LongConvParameters& parameters,
                                       LongConvGradients& sums,
                                       const LongConvParameterGradients& gradients) {
  auto& taken = static_cast<cpu::LongConvKernelGradients&>(sums);
  LongConvKernelGradient(parameters, taken.OfHeads(), weights.longest(), gradients,
                         Turn().pool().Loop());
  taken.Zero();
}

void CpuBackend::CausalAttention(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                 int64_t sequences, const AttentionDropout& dropout, Tensor o) {
  cpu::CausalAttention(Turn(), shape, qkv, inv_freq, sequences, dropout, o);
}

void CpuBackend::CausalAttentionBackward(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                         int64_t sequences, const AttentionDropout& dropout,
                                         Tensor d_o, Gradient dqkv) {
  cpu::CausalAttentionBackward(Turn(), shape, qkv, inv_freq, sequences, dropout, d_o, dqkv);
}

void CpuBackend::BidirectionalAttentionBackward(const AttentionShape& shape, Tensor qkv,
                                                Tensor mask, Tensor d_o, Gradient dqkv) {
  cpu::BidirectionalAttentionBackward(Turn(), shape, qkv, mask, d_o, dqkv);
}

void CpuBackend::CausalLinearAttention(const LinearAttentionShape& shape, Tensor qkv,
                                       int64_t sequences, Tensor o) {
  cpu::CausalLinearAttention(Turn(), shape, qkv, sequences, o);
}

void CpuBackend::CausalLinearAttentionBackward(const LinearAttentionShape& shape, Tensor qkv,
                                               int64_t sequences, Tensor d_o, Gradient dqkv) {
  cpu::CausalLinearAttentionBackward(Turn(), shape, qkv, sequences, d_o, dqkv);
}

void CpuBackend::LayerNormBackward(Tensor x, Tensor gamma, double epsilon, Tensor dy, Gradient dx,
                                   Tensor dgamma, Tensor dbeta) {
  cpu::LayerNormBackward(Turn(), x, gamma, epsilon, dy, dx, dgamma, dbeta);
}

void CpuBackend::ActivateBackward(Tensor x, const Epilogue& epilogue, Tensor dy, Gradient dx,
                                  Gradient dgate) {
  cpu::ActivateBackward(Turn(), x, epilogue, dy, dx, dgate);
}

void CpuBackend::ScatterRows(Tensor dy, Tensor indices, Tensor dtable) {
  cpu::ScatterRows(Turn(), dy, indices, dtable);
}

void CpuBackend::MeanPoolBackward(Tensor mask, Tensor dy, Gradient dx) {
  cpu::MeanPoolBackward(Turn(), mask, dy, dx);
}

void CpuBackend::Drop(double p, uint64_t seed, Tensor x) { cpu::Drop(Turn(), p, seed, x); }

void CpuBackend::Fill(float value, Tensor x) { cpu::Fill(Turn(), value, x); }

void CpuBackend::Copy(Tensor x, Tensor y) { cpu::Copy(Turn(), x, y); }

void CpuBackend::Add(Tensor x, Tensor y) { cpu::Add(Turn(), x, y); }

double CpuBackend::SumOfSquares(Tensor x) { return cpu::SumOfSquares(Turn(), x); }

void CpuBackend::AdamW(const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w) {
  cpu::AdamW(Turn(), step, gradient, m, v, w);
}

void CpuBackend::MovingAverage(Tensor x, double decay, Tensor average) {
  cpu::MovingAverage(Turn(), x, decay, average);
}

}  // namespace hippodrome
