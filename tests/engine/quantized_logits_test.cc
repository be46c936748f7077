// How far the logits of whole models with weights of 8 and of 4 bits are from the exact ones,
// against what the scales of their products allow.
//
// An operand is off by at most half a step, the scale of its group. These errors are many, small,
// and as good as independent, uniform over a step s, of variance s^2 / 12 (Widrow's model of
// quantisation). So the f32 model, with such noise added to weights and activations where they
// would be rounded, drawn many times, gives the variance of each logit behind all layers, and how
// much the deviations in all differ from one draw to the next. What rounds must be no further off
// than what draws. Steps are computed here, from the values alone: a wrong scale makes the
// deviations larger, and not the bound. Sums of the largest errors would be no bound to speak of:
// with n operands they are sqrt(n) times as large as what happens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "engine/model_directory.h"
#include "engine/passes/encoder_forward.h"
#include "engine/passes/forward.h"
#include "kernels/make_backend.h"
#include "kernels/quantized_group.h"
#include "tests/reference/linear.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/random_model.h"
#include "tools/compare/forwarding_backend.h"

namespace hippodrome::quantized_logits_test {
namespace {

using Logits = std::vector<float>;
using Deviations = std::vector<double>;

// How many steps the largest magnitude of a group is. With 4 bits it is one of kInt4Steps. 7.25 is
// the largest that surely moves no value by more than half a step; what is chosen in its place has
// no more squared error, on average a quarter less.
constexpr float kInt8Steps = 127;
constexpr float kInt4StepsUnclipped = 7.25f;
static_assert(std::ranges::find(kInt4Steps, kInt4StepsUnclipped) != std::end(kInt4Steps));

// Operands of its products with quantised weights have noise in place of being rounded.
class NoisyBackend final : public ForwardingBackend {
 public:
  NoisyBackend(Backend& inner, uint32_t seed) : ForwardingBackend(inner), random_(seed) {}

  // Its products read f32.
  OwnedTensor NewProductInputs(int64_t rows, int64_t cols, DType /*weights*/) override {
    return NewActivations(rows, cols, DType::kF32);
  }

  std::unique_ptr<LinearWeights> PackLinear(std::span<const HostMatrix> parts,
                                            DType dtype) override {
    std::vector<std::vector<float>> values;
    std::vector<HostMatrix> noisy;
    for (const HostMatrix& part : parts) {
      EXPECT_EQ(part.dtype, DType::kF32);
      const auto* first = static_cast<const float*>(part.data);
      values.emplace_back(first, first + part.rows * part.cols);
      AddNoise(values.back(), part.cols, dtype,
               dtype == DType::kI8 ? kInt8Steps : kInt4StepsUnclipped);
      noisy.push_back({values.back().data(), DType::kF32, part.rows, part.cols});
    }
    auto packed = ForwardingBackend::PackLinear(noisy, DType::kF32);
    dtypes_[packed.get()] = dtype;
    return packed;
  }

  void Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) override {
    std::vector<float> values(static_cast<size_t>(x.rows * x.cols));
    Download(x, values);
    AddNoise(values, x.cols, dtypes_.at(&w), kInt8Steps);
    const OwnedTensor noisy = NewActivations(x.rows, x.cols, DType::kF32);
    Upload(values, noisy);
    ForwardingBackend::Linear(noisy, w, epilogue, y);
  }

 private:
  // Rows of `cols` values.
  void AddNoise(std::span<float> values, int64_t cols, DType weights, float steps) {
    for (; !values.empty(); values = values.subspan(static_cast<size_t>(cols))) {
      reference::ForEachGroup(values.first(static_cast<size_t>(cols)), weights,
                              [&](std::span<float> group, DType) { AddNoise(group, steps); });
    }
  }
  void AddNoise(std::span<float> group, float steps) {
    float largest = 0;
    for (const float value : group) largest = std::max(largest, std::abs(value));
    std::uniform_real_distribution<float> errors(-0.5f, 0.5f);
    for (float& value : group) value += errors(random_) * largest / steps;
  }

  std::mt19937 random_;
  std::map<const LinearWeights*, DType> dtypes_;
};

Logits DecoderLogits(Backend& backend, const HybridH3& model, bool step) {
  Logits logits;
  const auto ids = RandomIds(64, model.config().vocab_size, 5);
  const absl::Status status =
      Forward(backend, model, ids, {.step = step}, [&](int64_t, std::span<const float> rows) {
        logits.insert(logits.end(), rows.begin(), rows.end());
      });
  EXPECT_TRUE(status.ok()) << status;
  return logits;
}

template <bool kStep>
Logits HybridLogits(Backend& backend, DType weights) {
  const auto loaded =
      LoadDecoderDirectory(backend, std::string(HIPPODROME_TESTDATA) + "/h3_golden", weights);
  return DecoderLogits(backend, *loaded.value().model, kStep);
}

// Its rows have several groups of either width, the last one not full.
template <bool kStep>
Logits PureH3Logits(Backend& backend, DType weights) {
  H3Config config = TinyConfig();
  config.n_layer = 2;
  config.d_model = config.n_ssm = kInt8Group + kInt4Group / 2;
  config.d_inner = 2 * config.d_model;
  config.attention_layers = {};
  config.attention_heads = 0;
  return DecoderLogits(backend, *MakeTestModel(backend, config, weights), kStep);
}

Logits EncoderLogits(Backend& backend, const std::string& name, DType weights) {
  const auto loaded = LoadEncoderDirectory(
      backend, std::string(HIPPODROME_TESTDATA) + "/bigs_golden/" + name, weights);
  const Bigs& model = *loaded.value().model;
  constexpr int64_t kBatch = 32, kLength = 8, kTokens = kBatch * kLength;
  Logits logits;
  const absl::Status status =
      EncoderForward(backend, model,
                     {.batch = kBatch,
                      .length = kLength,
                      .ids = RandomIds(kTokens, model.config().vocab_size, 1),
                      .types = RandomIds(kTokens, model.config().type_vocab_size, 2),
                      .mask = std::vector<int32_t>(kTokens, 1)},
                     [&](std::span<const float> values) {
                       logits.insert(logits.end(), values.begin(), values.end());
                     });
  EXPECT_TRUE(status.ok()) << status;
  return logits;
}

struct Model {
  std::string name;
  std::function<Logits(Backend&, DType weights)> logits;
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

std::vector<Model> Models() {
  return {
      {"hybrid_prefill", HybridLogits<false>},
      {"hybrid_steps", HybridLogits<true>},
      {"pure_h3_prefill", PureH3Logits<false>},
      {"pure_h3_steps", PureH3Logits<true>},
      {"masked_lm",
       [](Backend& b, DType weights) { return EncoderLogits(b, "masked_lm", weights); }},
      {"classifier",
       [](Backend& b, DType weights) { return EncoderLogits(b, "classifier", weights); }},
  };
}

Deviations Subtract(const Logits& logits, const Logits& exact) {
  EXPECT_EQ(logits.size(), exact.size());
  Deviations deviations(exact.size());
  std::ranges::transform(logits, exact, deviations.begin(), std::minus<double>());
  return deviations;
}

double MeanSquare(const Deviations& deviations) {
  return std::inner_product(deviations.begin(), deviations.end(), deviations.begin(), 0.0) /
         static_cast<double>(deviations.size());
}

// Deviations in units of those that were drawn.
class Noise {
 public:
  explicit Noise(const std::vector<Deviations>& draws) : variances_(draws.front().size()) {
    const auto count = static_cast<double>(draws.size());
    for (const Deviations& draw : draws) {
      mean_square_ += MeanSquare(draw) / count;
      for (size_t i = 0; i < draw.size(); ++i) variances_[i] += draw[i] * draw[i] / count;
    }
    double variance = 0;
    for (const Deviations& draw : draws) variance += std::pow(Relative(draw) - 1, 2) / count;
    spread_ = std::sqrt(variance);
  }

  // The mean square of all logits. Of what is drawn it is 1 on average, with a standard deviation
  // of spread().
  double Relative(const Deviations& deviations) const {
    return MeanSquare(deviations) / mean_square_;
  }
  double spread() const { return spread_; }
  // The largest of the logits, each in units of its own standard deviation.
  double Largest(const Deviations& deviations) const {
    double largest = 0;
    for (size_t i = 0; i < deviations.size(); ++i) {
      largest = std::max(largest, std::abs(deviations[i]) / std::sqrt(variances_[i]));
    }
    return largest;
  }

 private:
  double mean_square_ = 0;
  double spread_ = 0;
  std::vector<double> variances_;
};

Noise DrawNoise(Backend& backend, const Model& model, DType weights, const Logits& exact) {
  constexpr uint32_t kDraws = 64;
  std::vector<Deviations> draws;
  for (uint32_t seed = 0; seed < kDraws; ++seed) {
    NoisyBackend noisy(backend, seed);
    draws.push_back(Subtract(model.logits(noisy, weights), exact));
  }
  return Noise(draws);
}

class QuantizedLogitsTest : public testing::TestWithParam<std::tuple<Model, DType>> {};

TEST_P(QuantizedLogitsTest, DeviateAsMuchAsTheScalesSay) {
  const auto& [model, weights] = GetParam();
  const auto reference = MakeReferenceBackend();
  const auto cpu = MakeCpuBackend({.threads = 1});
  const Logits exact = model.logits(*reference, DType::kF32);
  const Noise noise = DrawNoise(*cpu, model, weights, exact);
  for (TrainingBackend* backend : {reference.get(), cpu.get()}) {
    const Deviations deviations = Subtract(model.logits(*backend, weights), exact);
    EXPECT_LE(noise.Relative(deviations), 1 + 4 * noise.spread()) << backend->name();
    // Without rounding there would be none.
    EXPECT_GE(noise.Relative(deviations), 0.5) << backend->name();
    // Student's t for as many draws is further off once in ten million; there are 77000 logits.
    EXPECT_LE(noise.Largest(deviations), 6) << backend->name();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, QuantizedLogitsTest,
                         testing::Combine(testing::ValuesIn(Models()),
                                          testing::Values(DType::kI8, DType::kI4)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" +
                                  WeightsName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace hippodrome::quantized_logits_test
