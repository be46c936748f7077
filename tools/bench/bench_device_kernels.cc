#include "tools/bench/bench_device_kernels.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "engine/state/decode_state.h"
#include "tools/bench/best_time.h"
#include "tools/bench/h3_layer_parameters.h"
#include "tools/limits/model_cost.h"

namespace hippodrome {
namespace {

constexpr int kRounds = 5;
constexpr int32_t kPrefixes = 16;  // lengths of what is before the steps, 1 to this
constexpr int kCalls = 10;         // per round, behind one wait
constexpr DType kWeights = DType::kBF16;

class OperationBenchmark {
 public:
  OperationBenchmark(const Machine& machine, const OperationSizes& sizes, const Ceilings& ceilings)
      : machine_(machine),
        b_(*machine.backend),
        s_(sizes),
        ceilings_(ceilings),
        activation_bytes_(static_cast<double>(SizeOf(Activations(1, 1).view.dtype))) {}

  std::vector<BenchResult> Run() {
    Dense(s_.prompts * s_.tokens);
    Dense(s_.batch);
    H3();
    Attention();
    Sampling();
    return std::move(results_);
  }

 private:
  OwnedTensor Activations(int64_t rows, int64_t cols) {
    return b_.NewActivations(rows, cols, kWeights);
  }
  OwnedTensor Indices(int64_t rows, int64_t cols, int32_t first, int32_t step) {
    OwnedTensor indices = b_.NewIndices(rows, cols);
    std::vector<int32_t> values(static_cast<size_t>(rows * cols));
    for (int32_t& value : values) value = std::exchange(first, first + step);
    b_.UploadIndices(values, indices);
    return indices;
  }

  template <typename Call>
  void Time(const std::string& name, int64_t length, int64_t batch, const Cost& cost,
            const Call& call) {
    call();
    b_.Wait();
    BestTime time;
    const BoundShares bounds(machine_);
    for (int round = 0; round < kRounds; ++round) {
      const double begin = machine_.clock();
      for (int i = 0; i < kCalls; ++i) call();
      b_.Wait();
      time.Take(machine_.clock() - begin);
    }
    const double seconds = time.seconds() / kCalls;
    const double least = LeastSeconds(cost, kWeights, ceilings_);
    results_.push_back({.name = name,
                        .length = length,
                        .batch = batch,
                        .weights = "bf16",
                        .value = 1e6 * seconds,
                        .unit = "us",
                        .limit = 1e6 * least,
                        .fraction = least / seconds,
                        .bound_by = bounds.Largest()});
  }

  void Dense(int64_t rows) {
    const int64_t d = s_.d_model;
    const OwnedTensor r = b_.NewTensor(rows, d);
    const OwnedTensor u = Activations(rows, d);
    const OwnedTensor gamma = b_.NewTensor(1, d);
    const auto n = static_cast<double>(rows * d);
    Time("layer_norm", rows, 1, {.bytes = n * (sizeof(float) + activation_bytes_)},
         [&] { b_.LayerNorm(r, gamma, gamma, 1e-5, u); });
    for (const auto& [in, out] : {std::pair{d, 3 * d}, {d, d}, {d, 4 * d}, {4 * d, d}}) {
      const std::vector<float> values(static_cast<size_t>(in * out), 0.01f);
      const HostMatrix host = {values.data(), DType::kF32, out, in};
      const auto w = b_.PackLinear({&host, 1}, kWeights);
      const OwnedTensor x = Activations(rows, in);
      const OwnedTensor y = Activations(rows, out);
      const auto sides = static_cast<double>(in * out);
      Time("linear " + std::to_string(in) + "x" + std::to_string(out), rows, 1,
           {.flops = 2 * sides * static_cast<double>(rows),
            .bytes = static_cast<double>(w->bytes()) +
                     static_cast<double>(rows * (in + out)) * activation_bytes_},
           [&] { b_.Linear(x, *w, {}, y); });
    }
  }

  void H3() {
    const int64_t d = s_.d_model;
    const H3LayerParameters parameters(d);
    const auto weights = b_.PrepareH3(parameters.view(), kWeights);
    const int64_t rows = std::max(s_.prompts * s_.tokens, s_.batch);
    const OwnedTensor qkv = Activations(rows, 3 * d);
    const OwnedTensor o = Activations(rows, d);
    const auto state = b_.NewH3State(*weights, std::max(s_.prompts, s_.batch), DType::kF32);
    const double points = static_cast<double>(s_.prompts * s_.tokens * d);
    const std::vector<SequencePart> prompts = WholeSequences(s_.prompts, s_.tokens);
    const int64_t prefill = s_.prompts * s_.tokens;
    Time("h3_sequence", s_.tokens, s_.prompts, {.bytes = 4 * points * activation_bytes_}, [&] {
      b_.H3Sequence(*weights, qkv.view.Rows(0, prefill), *state, {prompts, {}},
                    o.view.Rows(0, prefill));
    });
    // Blocks of the look-ahead begin at multiples of a position: here, not all at once.
    for (int32_t slot = 0; slot < s_.batch; ++slot) {
      b_.ResetSlot(*state, slot);
      const SequencePart part = {.slot = slot, .tokens = slot % kPrefixes + 1};
      b_.H3Sequence(*weights, qkv.view.Rows(0, part.tokens), *state, {{&part, 1}, {}},
                    o.view.Rows(0, part.tokens));
    }
    const OwnedTensor slots = Indices(1, s_.batch, 0, 1);
    const OwnedTensor positions = b_.NewIndices(1, s_.batch);
    std::vector<int32_t> at(static_cast<size_t>(s_.batch));
    for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int32_t>(i) % kPrefixes + 1;
    // The state, q, k, v and o.
    const double row_bytes = static_cast<double>(state->bytes_per_step()) +
                             4.0 * static_cast<double>(d) * activation_bytes_;
    Time("h3_step", 1, s_.batch, {.bytes = static_cast<double>(s_.batch) * row_bytes}, [&] {
      b_.UploadIndices(at, positions);
      for (int32_t& position : at) ++position;
      b_.H3Step(*weights, qkv.view.Rows(0, s_.batch), *state, slots, positions,
                o.view.Rows(0, s_.batch));
    });
  }

  void Attention() {
    const int64_t d = s_.d_model;
    const AttentionShape shape = {.heads = s_.heads, .head_dim = d / s_.heads};
    const int64_t per_sequence = s_.tokens / kPageTokens + 1;
    const int64_t sequences = std::max(s_.prompts, s_.batch);
    const auto pages = b_.NewKeyValuePages(shape, sequences * per_sequence, kPageTokens, kWeights);
    const OwnedTensor tables = Indices(sequences, per_sequence, 0, 1);
    const int64_t rows = std::max(s_.prompts * s_.tokens, s_.batch);
    const OwnedTensor qkv = Activations(rows, 3 * d);
    const OwnedTensor o = Activations(rows, d);
    const double points = static_cast<double>(s_.prompts * s_.tokens * d);
    const std::vector<SequencePart> prompts = WholeSequences(s_.prompts, s_.tokens);
    const int64_t prefill = s_.prompts * s_.tokens;
    Time("attention_sequence", s_.tokens, s_.prompts,
         {.flops = 2 * points * static_cast<double>(s_.tokens),
          .bytes = 4 * points * activation_bytes_},
         [&] {
           b_.AttentionSequence(shape, qkv.view.Rows(0, prefill), {}, *pages,
                                tables.view.Rows(0, s_.prompts), {prompts, {}},
                                o.view.Rows(0, prefill));
         });
    const OwnedTensor positions = Indices(1, s_.batch, static_cast<int32_t>(s_.tokens), 0);
    Time("attention_step", s_.tokens, s_.batch,
         {.bytes = 2.0 * static_cast<double>(s_.batch * d * s_.tokens) * activation_bytes_}, [&] {
           b_.AttentionStep(shape, qkv.view.Rows(0, s_.batch), {}, *pages,
                            tables.view.Rows(0, s_.batch), positions, o.view.Rows(0, s_.batch));
         });
  }

  // Tokens as frequent as words are: the r-th most likely has r^-1.5 of the first one's weight.
  OwnedTensor ZipfLogits() {
    std::vector<float> values;
    for (int64_t row = 0; row < s_.batch; ++row) {
      for (int64_t token = 0; token < s_.vocab; ++token) {
        const int64_t rank = (7919 * token + row) % s_.vocab + 1;
        values.push_back(-1.5f * std::log(static_cast<float>(rank)));
      }
    }
    OwnedTensor logits = b_.NewTensor(s_.batch, s_.vocab);
    b_.Upload(values, logits);
    return logits;
  }

  void Sampling() {
    const OwnedTensor logits = ZipfLogits();
    const OwnedTensor tokens = b_.NewIndices(1, s_.batch);
    const OwnedTensor rows = b_.NewIndices(s_.batch, kSamplingColumns);
    const Cost cost = {.bytes = static_cast<double>(s_.batch * s_.vocab) * sizeof(float)};
    for (const auto& [name, parameters] :
         {std::pair<const char*, SamplingParameters>{"sample greedy", {.temperature = 0}},
          {"sample", {}},
          {"sample top_p", {.top_p = 0.9f}},
          {"sample top_k", {.top_k = 40}}}) {
      const std::vector<SamplingRow> values(static_cast<size_t>(s_.batch), {parameters, 1});
      b_.UploadIndices(AsIndices(values), rows);
      Time(name, 1, s_.batch, cost, [&] { b_.Sample(logits, s_.vocab, rows, {}, tokens); });
    }
  }

  const Machine& machine_;
  Backend& b_;
  const OperationSizes s_;
  const Ceilings& ceilings_;
  const double activation_bytes_;
  std::vector<BenchResult> results_;
};

}  // namespace

std::vector<BenchResult> BenchOperations(const Machine& machine, const OperationSizes& sizes,
                                         const Ceilings& ceilings) {
  return OperationBenchmark(machine, sizes, ceilings).Run();
}

std::vector<BenchResult> BenchGatedConvolution(DeviceYardsticks& yardsticks,
                                               const Ceilings& ceilings) {
  using Convolution = DeviceYardsticks::Convolution;
  constexpr int64_t kSequences = 64;
  constexpr int64_t kChannels = 768;
  std::vector<BenchResult> results;
  for (const int64_t points : {256, 1024, 4096, 8192, 16384, 32768}) {
    const double least =
        8.0 * static_cast<double>(kSequences * kChannels * points) / ceilings.read_bytes;
    const auto own =
        yardsticks.GatedConvSeconds(Convolution::kFused, kSequences, kChannels, points);
    const auto other =
        yardsticks.GatedConvSeconds(Convolution::kCufft, kSequences, kChannels, points);
    const auto add = [&](const char* name, const std::optional<double>& seconds) {
      if (!seconds) return;
      results.push_back({.name = name,
                         .length = points,
                         .batch = kSequences,
                         .value = 1e3 * *seconds,
                         .unit = "ms",
                         .limit = 1e3 * least,
                         .fraction = least / *seconds});
    };
    add("gated_conv", own);
    add("gated_conv cufft", other);
    if (!own || !other) continue;
    results.push_back({.name = "gated_conv / cufft",
                       .length = points,
                       .batch = kSequences,
                       .value = *own / *other,
                       .unit = "of time"});
  }
  return results;
}

}  // namespace hippodrome
