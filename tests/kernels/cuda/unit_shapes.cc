#include "tests/kernels/cuda/counted_shapes.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/gemm/linear.h"
#include "tests/cuda_on_cpu/counters.h"
#include "tools/bench/h3_layer_parameters.h"

namespace hippodrome {
namespace {

constexpr DType kWeights = DType::kBF16;
constexpr int64_t kWidth = 2048;
constexpr int64_t kRows = 64;

OwnedTensor Indices(CudaBackend& b, int64_t rows, int64_t cols, int32_t first, int32_t step) {
  OwnedTensor indices = b.NewIndices(rows, cols);
  std::vector<int32_t> values(static_cast<size_t>(rows * cols));
  for (int32_t& value : values) value = std::exchange(first, first + step);
  b.UploadIndices(values, indices);
  return indices;
}

std::unique_ptr<LinearWeights> Weights(CudaBackend& b, int64_t out, int64_t in,
                                       DType weights = kWeights) {
  const std::vector<float> values(static_cast<size_t>(out * in), 0.01f);
  const HostMatrix host = {values.data(), DType::kF32, out, in};
  return b.PackLinear({&host, 1}, weights);
}

void Embedding() {
  CudaBackend b;
  const auto table = Weights(b, kRows, kWidth);
  const OwnedTensor ids = Indices(b, 1, kRows, 0, 1);
  const OwnedTensor y = b.NewTensor(kRows, kWidth);
  cuda_on_cpu::ResetCounts();
  b.Embedding(*table, ids, {}, {}, y);
}

void GatherRows() {
  CudaBackend b;
  const OwnedTensor x = b.NewTensor(kRows, kWidth);
  const OwnedTensor rows = Indices(b, 1, kRows, 0, 1);
  const OwnedTensor y = b.NewActivations(kRows, kWidth, kWeights);
  cuda_on_cpu::ResetCounts();
  b.GatherRows(x, rows, y);
}

constexpr int64_t kNormRows = 8 * 8 * 132;  // of a prompt: 8 of each block, which reads gamma once

void LayerNorm() {
  CudaBackend b;
  const OwnedTensor x = b.NewTensor(kNormRows, kWidth);
  const OwnedTensor gamma = b.NewTensor(1, kWidth);
  const OwnedTensor beta = b.NewTensor(1, kWidth);
  const OwnedTensor y = b.NewActivations(kNormRows, kWidth, kWeights);
  cuda_on_cpu::ResetCounts();
  b.LayerNorm(x, gamma, beta, 1e-5, y);
}

constexpr int64_t kOut = 4224;  // two tiles of columns for each block

void NormalizeAndMultiply() {
  CudaBackend b;
  const auto w = Weights(b, kOut, kWidth, kWeights);
  const OwnedTensor x = b.NewTensor(1, kWidth);
  const OwnedTensor gamma = b.NewTensor(1, kWidth);
  const OwnedTensor beta = b.NewTensor(1, kWidth);
  const OwnedTensor u = b.NewActivations(1, kWidth, kWeights);
  const OwnedTensor y = b.NewActivations(1, kOut, kWeights);
  cuda_on_cpu::ResetCounts();
  b.LayerNormLinear(x, {gamma, beta, 1e-5}, u, *w, {}, y);
}

void Multiply(DType weights, int64_t rows) {
  CudaBackend b;
  const auto w = Weights(b, kOut, kWidth, weights);
  const OwnedTensor x = b.NewActivations(rows, kWidth, weights);
  const OwnedTensor y = b.NewActivations(rows, kOut, weights);
  cuda_on_cpu::ResetCounts();
  b.Linear(x, *w, {}, y);
}

constexpr int64_t kChannels = 32;
constexpr int64_t kScanned = 1024;
constexpr int32_t kSteps = 16;

// Sequences of one token each, and then steps.
class Layer {
 public:
  explicit Layer(int64_t sequences)
      : sequences_(sequences),
        parameters_(kChannels),
        weights_(b_.PrepareH3(parameters_.view(), kWeights)),
        state_(b_.NewH3State(*weights_, sequences, DType::kF32)) {}

  void Prefill(int64_t tokens) {
    const OwnedTensor qkv = b_.NewActivations(sequences_ * tokens, 3 * kChannels, kWeights);
    const OwnedTensor o = b_.NewActivations(sequences_ * tokens, kChannels, kWeights);
    const std::vector<SequencePart> parts = WholeSequences(sequences_, tokens);
    cuda_on_cpu::ResetCounts();
    b_.H3Sequence(*weights_, qkv, *state_, {parts, {}}, o);
  }

  void Step() {
    Prefill(kSteps);
    const OwnedTensor qkv = b_.NewActivations(sequences_, 3 * kChannels, kWeights);
    const OwnedTensor o = b_.NewActivations(sequences_, kChannels, kWeights);
    const OwnedTensor slots = Indices(b_, 1, sequences_, 0, 1);
    cuda_on_cpu::ResetCounts();
    for (int32_t i = 0; i < kSteps; ++i) {
      const OwnedTensor positions = Indices(b_, 1, sequences_, kSteps + i, 0);
      b_.H3Step(*weights_, qkv, *state_, slots, positions, o);
    }
  }

 private:
  CudaBackend b_;
  int64_t sequences_;
  H3LayerParameters parameters_;
  std::unique_ptr<H3Weights> weights_;
  std::unique_ptr<RecurrentState> state_;
};

constexpr int64_t kTogether = 32;  // look ahead
constexpr int64_t kApart = 8;

constexpr int64_t kStored = 32;  // rows of all heads

class Attention {
 public:
  static constexpr int64_t kHeadDim = 128;
  static constexpr int64_t kPage = 64;
  static constexpr int32_t kContext = 1024;
  static constexpr int64_t kParts = 4;  // of a step
  static constexpr int64_t kQueries = 256;
  static constexpr int64_t kTiles = 6;  // of kQueries: 2 and 4 of 128 by 64

  explicit Attention(int64_t heads) : shape_{.heads = heads, .head_dim = kHeadDim} {}

  void Prefill(int64_t tokens) {
    const OwnedTensor qkv = b_.NewActivations(tokens, 3 * width(), kWeights);
    const OwnedTensor o = b_.NewActivations(tokens, width(), kWeights);
    const std::vector<SequencePart> parts = WholeSequences(1, tokens);
    cuda_on_cpu::ResetCounts();
    b_.AttentionSequence(shape_, qkv, {}, *pages_, tables_, {parts, {}}, o);
  }

  void Step() {
    const OwnedTensor qkv = b_.NewActivations(1, 3 * width(), kWeights);
    const OwnedTensor o = b_.NewActivations(1, width(), kWeights);
    const OwnedTensor positions = Indices(b_, 1, 1, kContext - 1, 0);
    cuda_on_cpu::ResetCounts();
    b_.AttentionStep(shape_, qkv, {}, *pages_, tables_, positions, o);
  }

 private:
  int64_t width() const { return shape_.heads * kHeadDim; }

  CudaBackend b_;
  const AttentionShape shape_;
  std::unique_ptr<KeyValuePages> pages_ =
      b_.NewKeyValuePages(shape_, kContext / kPage, kPage, kWeights);
  OwnedTensor tables_ = Indices(b_, 1, kContext / kPage, 0, 1);
};

void FinishLinear() {
  cuda::Device device;
  const OwnedTensor sums = cuda::NewMatrix(device, kRows, kWidth, DType::kF32);
  const OwnedTensor y = cuda::NewMatrix(device, kRows, kWidth, kWeights);
  cuda_on_cpu::ResetCounts();
  cuda::FinishLinear(device, sums, {.gate = y}, y);
}

void Toeplitz(int64_t tokens) { ConvolveLong(kWeights, tokens, {cuda::LongConvMethod::kToeplitz}); }
void Transform(int64_t tokens) { ConvolveLong(kWeights, tokens, {cuda::LongConvMethod::kFft}); }

constexpr int64_t kVocab = 50264;

void Sample(const SamplingParameters& parameters) {
  CudaBackend b;
  std::vector<float> values;
  for (int64_t i = 0; i < kVocab; ++i) values.push_back(0.0002f * static_cast<float>(i % 9973));
  const OwnedTensor logits = b.NewTensor(1, kVocab);
  b.Upload(values, logits);
  const OwnedTensor rows = b.NewIndices(1, kSamplingColumns);
  const SamplingRow row = {parameters, 1};
  b.UploadIndices(AsIndices(std::span(&row, 1)), rows);
  const OwnedTensor tokens = b.NewIndices(1, 1);
  cuda_on_cpu::ResetCounts();
  b.Sample(logits, kVocab, rows, {}, tokens);
}

constexpr int64_t kConvRows = 16;

void ConvolveRows(int64_t points) { ConvolveGated(kConvRows, 1, points); }

constexpr UnitShape kUnitShapes[] = {
    {"embedding", "embedding", kRows* kWidth, Embedding},
    {"gather_rows", "gather_rows", kRows* kWidth, GatherRows},
    {"layer_norm", "layer_norm", kNormRows* kWidth, LayerNorm},
    {"linear_step", "linear_step", kOut* kWidth, [] { Multiply(kWeights, 1); }},
    {"layer_norm_linear_step", "layer_norm_linear_step", kOut* kWidth, NormalizeAndMultiply},
    {"round_inputs", "round_inputs", kRows* kWidth, [] { Multiply(DType::kI8, kRows); }},
    {"linear_quantized int8, 8 rows", "linear_quantized", kOut* kWidth,
     [] { Multiply(DType::kI8, 1); }},
    {"linear_quantized int8", "linear_quantized", kOut* kWidth, [] { Multiply(DType::kI8, 9); }},
    {"linear_quantized int4", "linear_quantized", kOut* kWidth, [] { Multiply(DType::kI4, 1); }},
    {"linear_quantized int8, 32 rows", "linear_quantized", kRows / 32 * kOut* kWidth,
     [] { Multiply(DType::kI8, kRows); }},
    {"linear_quantized int4, 32 rows", "linear_quantized", kRows / 32 * kOut* kWidth,
     [] { Multiply(DType::kI4, kRows); }},
    {"linear_quantized_rows int8", "linear_quantized_rows", kOut* kWidth,
     [] { Multiply(DType::kI8, 128); }},
    {"linear_quantized_rows int4", "linear_quantized_rows", 2 * kOut* kWidth,
     [] { Multiply(DType::kI4, 128); }},
    {"h3_settle", "h3_settle", kTogether* kChannels, [] { Layer(kTogether).Prefill(1); }},
    {"h3_scan", "h3_scan", kScanned* kChannels, [] { Layer(1).Prefill(kScanned); }},
    {"h3_step", "h3_step", kSteps* kApart* kChannels, [] { Layer(kApart).Step(); }},
    {"h3_step ahead", "h3_step", kSteps* kTogether* kChannels, [] { Layer(kTogether).Step(); }},
    {"linear_finish", "linear_finish", kRows* kWidth, FinishLinear},
    {"long_conv_toeplitz", "long_conv_toeplitz", 2 + 4 + 6 + 8, [] { Toeplitz(512); }},
    {"long_conv_fft 512", "long_conv_fft", kLongConvChannels, [] { Transform(512); }},
    {"long_conv_fft 1024", "long_conv_fft", kLongConvChannels, [] { Transform(1024); }},
    {"long_conv_fft 2048", "long_conv_fft", kLongConvChannels, [] { Transform(2048); }},
    {"long_conv_fft 4096", "long_conv_fft", kLongConvChannels, [] { Transform(4096); }},
    {"long_conv_fft 8192", "long_conv_fft", kLongConvChannels, [] { Transform(8192); }},
    {"attention_store", "attention_store", kStored* kWidth,
     [] { Attention(kWidth / Attention::kHeadDim).Prefill(kStored); }},
    {"attention_sequence", "attention_sequence", Attention::kTiles* Attention::kHeadDim,
     [] { Attention(1).Prefill(Attention::kQueries); }},
    {"attention_step", "attention_step", Attention::kContext* Attention::kHeadDim,
     [] { Attention(1).Step(); }},
    {"attention_combine", "attention_combine", Attention::kParts* Attention::kHeadDim,
     [] { Attention(1).Step(); }},
    {"sample greedy", "sample", kVocab, [] { Sample({.temperature = 0}); }},
    {"sample", "sample", kVocab, [] { Sample({.top_p = 0.9f}); }},
    {"gated_conv 256", "gated_conv", kConvRows, [] { ConvolveRows(256); }},
    {"gated_conv 1024", "gated_conv", kConvRows, [] { ConvolveRows(1024); }},
    {"gated_conv 4096", "gated_conv", kConvRows, [] { ConvolveRows(4096); }},
    {"gated_conv 8192", "gated_conv", kConvRows, [] { ConvolveRows(8192); }},
    {"gated_conv 16384", "gated_conv", kConvRows, [] { ConvolveRows(16384); }},
    {"gated_conv 32768", "gated_conv", kConvRows, [] { ConvolveRows(32768); }},
};

}  // namespace

std::span<const UnitShape> UnitShapes() { return kUnitShapes; }

}  // namespace hippodrome
