// Gradients of whole models through a tape against differences of their loss.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/checkpoint/parameter_weights.h"
#include "engine/models/h3/hybrid_h3.h"
#include "kernels/tape/tape.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/initial_model.h"
#include "tests/testing/random_model.h"

namespace hippodrome::mixer_gradients_test {
namespace {

constexpr int64_t kSequences = 2;
constexpr int64_t kTokens = 6;
constexpr int64_t kRows = kSequences * kTokens;

class MixerGradientsTest : public testing::TestWithParam<DecoderMixer> {
 protected:
  MixerGradientsTest() : config_(TinyMixerConfig(GetParam())) {
    auto initial = InitialWeights(config_, {.initializer_range = 0.3});
    for (InitialParameter& p : *initial) {
      parameters_.Add(p.name, p.shape, std::move(p.values));
    }
    model_ = std::move(HybridH3::Load(tape_, config_, source_, DType::kF32)).value();
    activations_.emplace(model_->NewActivations(tape_, kRows));
    states_ = model_->NewLayerStates(tape_, kSequences, kSequences, kTokens);
    ids_ = Indices(1, RandomIds(kRows, config_.vocab_size, 1));
    labels_ = Indices(1, RandomIds(kRows, config_.vocab_size, 2));
    pages_ = Indices(kSequences, {0, 1});
  }

  OwnedTensor Indices(int64_t rows, const std::vector<int32_t>& values) {
    OwnedTensor indices = tape_.NewIndices(rows, std::ssize(values) / rows);
    tape_.UploadIndices(values, indices);
    return indices;
  }

  // The sum over all tokens; recorded after Begin().
  double Loss() {
    const ActivationRows a = activations_->Rows(kRows);
    model_->Embed(tape_, ids_, {}, a);
    for (int64_t layer = 0; layer < model_->layers(); ++layer) {
      model_->PrefillLayer(tape_, layer, a, {.parts = {parts_, {}}, .page_tables = pages_},
                           states_);
    }
    model_->Features(tape_, a);
    const OwnedTensor losses = tape_.NewTensor(1, kRows);
    tape_.LinearCrossEntropy(a.u, model_->embedding(), {}, labels_, 1, losses);
    std::vector<float> values(kRows);
    tape_.Download(losses, values);
    return std::accumulate(values.begin(), values.end(), 0.0);
  }

  // With every element of `parameter` moved by `step` times that of `direction`.
  double LossAt(Parameter& parameter, double step, const std::vector<float>& direction) {
    const std::vector<float> before = parameter.host;
    std::vector<float> values = before;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] += static_cast<float>(step * direction[i]);
    }
    parameters_.Store(parameter, values);
    tape_.Update();
    const double loss = Loss();
    parameters_.Store(parameter, before);
    return loss;
  }

  const H3Config config_;
  std::unique_ptr<TrainingBackend> backend_ = MakeReferenceBackend();
  Parameters parameters_{*backend_};
  Tape tape_{*backend_, parameters_, {.longest = kTokens}};
  ParameterWeights source_{parameters_};
  std::unique_ptr<HybridH3> model_;
  std::optional<Activations> activations_;
  LayerStates states_;
  OwnedTensor ids_, labels_, pages_;
  const std::vector<SequencePart> parts_ = WholeSequences(kSequences, kTokens);
};

INSTANTIATE_TEST_SUITE_P(Mixers, MixerGradientsTest,
                         testing::Values(DecoderMixer::kH3, DecoderMixer::kS4d, DecoderMixer::kS4,
                                         DecoderMixer::kGss, DecoderMixer::kLinearAttention),
                         [](const auto& info) { return Name(info.param); });

// In the direction of a parameter's gradient g the loss grows by |g|. A step makes it grow by at
// most 2^-5, so that it stays nearly straight. Losses of 12 tokens come back as f32, rounded by up
// to 2^-23 each: differences over 2^-5 are off by up to 12 2^-22 2^5 = 1e-4, of growth 2^-4 by up
// to 5e-5 of it.
TEST_P(MixerGradientsTest, AreTheSlopesOfTheLoss) {
  tape_.Begin(0);
  Loss();
  tape_.Backward();
  tape_.CollectGradients();
  for (Parameter& parameter : parameters_.all()) {
    ASSERT_NE(parameter.gradient.data, nullptr) << parameter.name;
    std::vector<float> direction(parameter.host.size());
    backend_->Download(parameter.gradient, direction);
    const double norm =
        std::sqrt(std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0));
    ASSERT_GT(norm, 1e-3) << parameter.name;
    for (float& g : direction) g = static_cast<float>(g / norm);
    parameters_.Fetch(parameter);
    const double step = std::min(0x1p-6, 0x1p-5 / norm);
    const double slope =
        (LossAt(parameter, step, direction) - LossAt(parameter, -step, direction)) / (2 * step);
    EXPECT_NEAR(norm, slope, 1e-4 + 2e-3 * norm) << parameter.name;
  }
}

}  // namespace
}  // namespace hippodrome::mixer_gradients_test
