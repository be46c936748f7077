#include "tests/kernels/cuda/counted_shapes.h"

#include <memory>
#include <stdexcept>
#include <vector>

#include "engine/checkpoint/parameter_weights.h"
#include "engine/encoder.h"
#include "engine/generator.h"
#include "engine/initialization/initial_weights.h"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/conv/gated_conv.h"
#include "kernels/cuda/conv/long_conv.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/cuda_on_cpu/counters.h"
#include "tests/testing/random_model.h"
#include "tools/train/step/decoder_trainee.h"
#include "tools/train/step/encoder_trainee.h"
#include "tools/train/step/optimizer.h"

namespace hippodrome {
namespace {

constexpr int32_t kIds = 500;

H3Config SmallH3(int64_t width) {
  H3Config config = TinyConfig();
  config.d_model = width;
  config.n_layer = 2;
  config.d_inner = 4 * width;
  config.vocab_size = kIds;
  config.padded_vocab_size = 512;
  config.d_state = 64;
  config.n_ssm = width;
  config.attention_layers = {1};
  config.attention_heads = 2;
  return config;
}

BigsConfig SmallBigs(int64_t width, int64_t length) {
  BigsConfig config = TinyBigsConfig();
  config.hidden_size = width;
  config.intermediate_size = 3 * width;
  config.num_ssm = 64;
  config.max_position_embeddings = length;
  config.pad_to = length;
  config.vocab_size = 512;
  return config;
}

void GenerateOnCuda(DType weights, int64_t sequences, int64_t prompt) {
  CudaBackend backend;
  GenerateSmall(backend, weights, sequences, prompt);
}

void EncodeOnCuda(DType weights, int64_t width, int64_t sequences, int64_t length) {
  CudaBackend backend;
  EncodeSmall(backend, weights, width, sequences, length);
}

// A step of training from random weights, with dropout.
template <class Trainee, typename Config>
void Train(const Config& config, ModelFamily family, const std::vector<InitialParameter>& initial,
           const TrainingBatch& batch) {
  CudaBackend backend;
  Parameters parameters(backend);
  for (const InitialParameter& parameter : initial) {
    parameters.Add(parameter.name, parameter.shape, parameter.values);
  }
  Tape tape(backend, parameters, {.longest = batch.length, .dropout = {0.1, 0.1}});
  const auto trainee = *Trainee::Create(tape, parameters, config, DType::kBF16,
                                        {.sequences = batch.sequences, .length = batch.length});
  const OptimizerOptions options = {.rate = 1e-3, .weight_decay = 0.1, .clip = 1};
  cuda_on_cpu::ResetCounts();
  trainee->Learn(batch, trainee->Terms(batch), 1);
  tape.CollectGradients();
  Optimizer optimizer(
      backend, TrainedBuckets(parameters), [](size_t) { return true; }, family, options);
  optimizer.Step(1, 1, GradientNorm(optimizer.SquaredNorms()));
  tape.Update();
}

TrainingBatch Batch(int64_t sequences, int64_t length, int64_t labels, int64_t classes) {
  return {.sequences = sequences,
          .length = length,
          .ids = RandomIds(sequences * length, kIds, 1),
          .labels = RandomIds(labels, classes, 2)};
}

void TrainDecoder(DecoderMixer mixer, int64_t head_dim) {
  H3Config config = SmallH3(64);
  config.mixer = mixer;
  config.head_dim = head_dim;
  Train<DecoderTrainee>(config, ModelFamily::kH3, *InitialWeights(config, {.seed = 1}),
                        Batch(2, 64, 128, kIds));
}

void TrainEncoder() {
  const BigsConfig config = SmallBigs(64, 64);
  Train<EncoderTrainee>(config, ModelFamily::kBigs, InitialWeights(config, {.seed = 1}),
                        Batch(2, 64, 2, 3));
}

void ConvolveByBoth(DType dtype, int64_t tokens) {
  ConvolveLong(dtype, tokens, {cuda::LongConvMethod::kFft, cuda::LongConvMethod::kToeplitz});
}

constexpr CountedShape kShapes[] = {
    {"h3 bf16, 2 prompts of 128", [] { GenerateOnCuda(DType::kBF16, 2, 128); }},
    {"h3 int8, 2 prompts of 128", [] { GenerateOnCuda(DType::kI8, 2, 128); }},
    {"h3 int4, 2 prompts of 128", [] { GenerateOnCuda(DType::kI4, 2, 128); }},
    {"h3 f32, 2 prompts of 64", [] { GenerateOnCuda(DType::kF32, 2, 64); }},
    {"bigs bf16, 2 texts of 128", [] { EncodeOnCuda(DType::kBF16, 128, 2, 128); }},
    {"bigs f32, a text of 512", [] { EncodeOnCuda(DType::kF32, 32, 1, 512); }},
    {"long convolution bf16, 512 tokens", [] { ConvolveByBoth(DType::kBF16, 512); }},
    {"long convolution bf16, 1024 tokens", [] { ConvolveByBoth(DType::kBF16, 1024); }},
    {"long convolution bf16, 2048 tokens", [] { ConvolveByBoth(DType::kBF16, 2048); }},
    {"long convolution f32, 512 tokens", [] { ConvolveByBoth(DType::kF32, 512); }},
    {"training h3 bf16, 2 windows of 64", [] { TrainDecoder(DecoderMixer::kH3, 1); }},
    {"training linear attention bf16, 2 windows of 64",
     [] { TrainDecoder(DecoderMixer::kLinearAttention, 64); }},
    {"training bigs bf16, 2 texts of 64", TrainEncoder},
    {"gated convolution bf16, 8 rows of 256", [] { ConvolveGated(8, 1, 256); }},
    {"gated convolution bf16, 2 rows of 1024", [] { ConvolveGated(2, 1, 1024); }},
    {"gated convolution bf16, 2 rows of 4096", [] { ConvolveGated(2, 1, 4096); }},
    {"gated convolution bf16, 2 rows of 8192", [] { ConvolveGated(2, 1, 8192); }},
    {"gated convolution bf16, 2 rows of 16384", [] { ConvolveGated(2, 1, 16384); }},
    {"gated convolution bf16, 2 rows of 32768", [] { ConvolveGated(2, 1, 32768); }},
};

}  // namespace

std::span<const CountedShape> CountedShapes() { return kShapes; }

void GenerateSmall(Backend& backend, DType weights, int64_t sequences, int64_t prompt) {
  const auto model = MakeTestModel(backend, SmallH3(128), weights);
  cuda_on_cpu::ResetCounts();
  const auto generator = *Generator::Create(
      backend, *model, {.max_sequences = sequences, .key_value_bytes = 16 << 20});
  std::vector<TokenEvent> events;
  for (int64_t i = 0; i < sequences; ++i) {
    const auto id = generator->Admit({.prompt = RandomIds(prompt, kIds, static_cast<uint32_t>(i)),
                                      .max_tokens = 3,
                                      .ignore_eos = true});
    if (!id.ok()) throw std::runtime_error(id.status().ToString());
  }
  generator->Prefill(Generator::Clock::time_point::max(), events);
  while (generator->decoding() > 0) generator->Step(events);
}

void EncodeSmall(Backend& backend, DType weights, int64_t width, int64_t sequences,
                 int64_t length) {
  const auto model = MakeTestBigs(backend, SmallBigs(width, length), weights);
  cuda_on_cpu::ResetCounts();
  const auto encoder = *Encoder::Create(backend, *model, {});
  std::vector<EncoderRequest> requests;
  for (int64_t i = 0; i < sequences; ++i) {
    requests.push_back({.ids = RandomIds(length, kIds, static_cast<uint32_t>(i))});
  }
  std::vector<const EncoderRequest*> pointers;
  for (const EncoderRequest& request : requests) pointers.push_back(&request);
  encoder->Run(pointers);
}

void ConvolveGated(int64_t sequences, int64_t channels, int64_t points) {
  cuda::Device device;
  const std::vector<double> kernels(static_cast<size_t>(channels * points), 0.5);
  const auto conv = cuda::MakeFusedGatedConv(device, kernels, channels, points, DType::kBF16);
  const auto rows = [&] {
    return cuda::NewMatrix(device, sequences * channels, points, DType::kBF16);
  };
  const OwnedTensor k = rows();
  const OwnedTensor v = rows();
  const OwnedTensor q = rows();
  const OwnedTensor y = rows();
  cuda_on_cpu::ResetCounts();
  conv->Apply({.sequences = sequences, .k = k, .v = v, .q = q, .y = y});
}

void ConvolveLong(DType dtype, int64_t tokens,
                  std::initializer_list<cuda::LongConvMethod> methods) {
  constexpr float kOne[2] = {1, 1};
  cuda::Device device;
  const DiagonalSsmParameters ssm = {.channels = kLongConvChannels,
                                     .modes = 1,
                                     .a_real = std::span(kOne).first(1),
                                     .a_imag = std::span(kOne).first(1),
                                     .c = kOne,
                                     .log_step = std::span(kOne).first(1),
                                     .d = std::span(kOne).first(1)};
  const cuda::LongConvKernels constants(device, ssm, tokens, dtype);
  const OwnedTensor u = cuda::NewMatrix(device, tokens, kLongConvChannels, dtype);
  const OwnedTensor y = cuda::NewMatrix(device, tokens, kLongConvChannels, dtype);
  const cuda::LongConvCall call = {.constants = constants, .u = u, .sequences = 1, .y = y};
  const auto run = [&] {
    for (const cuda::LongConvMethod method : methods) {
      method == cuda::LongConvMethod::kFft ? LongConvFft(device, call)
                                           : LongConvToeplitz(device, call);
    }
  };
  run();  // makes the tables
  cuda_on_cpu::ResetCounts();
  run();
}

}  // namespace hippodrome
