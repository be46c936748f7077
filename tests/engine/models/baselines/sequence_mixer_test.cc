#include "engine/models/baselines/sequence_mixer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/checkpoint/safetensors.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/forward.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/initial_model.h"
#include "tests/testing/random_model.h"
#include "tests/testing/test_backend.h"

namespace hippodrome::sequence_mixer_test {
namespace {

using testing::HasSubstr;

H3Config LayerConfig(DecoderMixer mixer, int64_t d, int64_t d_state, int64_t n_ssm) {
  H3Config config;
  config.d_model = d;
  config.d_inner = d;
  config.n_layer = 1;
  config.mixer = mixer;
  config.d_state = d_state;
  config.n_ssm = n_ssm;
  config.longest = 64;
  return config;
}

double WorstDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(static_cast<double>(a[i]) - b[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

// A layer of tests/testdata/mixers_golden.
class Golden {
 public:
  Golden(const std::string& name, const H3Config& config)
      : config_(config),
        file_(*SafetensorsFile::Open(std::string(HIPPODROME_TESTDATA) + "/mixers_golden/" + name +
                                     ".safetensors")) {}

  std::vector<float> Floats(const std::string& name) const { return *ToFloats(*file_->Find(name)); }

  // The largest difference from the golden output.
  template <typename Mixer>
  double Error(Backend& b) const {
    const int64_t d = config_.d_model;
    FileWeights source(*file_);
    const WeightsReader reader(source, b, DType::kF32);
    const auto mixer = Mixer::Load(reader, config_, "mixer.");
    EXPECT_TRUE(mixer.ok()) << mixer.status();
    if (!mixer.ok()) return INFINITY;
    const Activations activations(b, config_, DType::kF32, 64);
    const ActivationRows a = activations.Rows(64);
    if (file_->Find("norm.weight") == nullptr) {
      b.Upload(Floats("input"), a.u);
    } else {
      b.Upload(Floats("input"), a.r);
      const OwnedTensor gamma = *reader.Row({"norm.weight"}, d);
      const OwnedTensor beta = *reader.Row({"norm.bias"}, d);
      b.LayerNorm(a.r, gamma, beta, 1e-5, a.u);
    }
    mixer->Prefill(b, a, 1);
    std::vector<float> output(64 * d);
    b.Download(a.r, output);
    return WorstDifference(output, Floats("output"));
  }

 private:
  const H3Config config_;
  std::unique_ptr<SafetensorsFile> file_;
};

Golden S4dGolden() { return {"s4d", LayerConfig(DecoderMixer::kS4d, 32, 64, 1)}; }
Golden S4Golden() {
  H3Config config = LayerConfig(DecoderMixer::kS4, 16, 16, 16);
  config.c_length = 64;
  return {"s4", config};
}
Golden GssGolden() {
  H3Config config = LayerConfig(DecoderMixer::kGss, 16, 32, 1);
  config.gss_channels = 8;
  return {"gss", config};
}

// Outputs of up to 5 are stored in f32: rounded by up to 2.4e-7. S4's is of an f32 run.
TEST(SequenceMixerTest, TheReferenceIsThePublishedLayers) {
  const auto backend = MakeReferenceBackend();
  EXPECT_LE(S4dGolden().Error<S4dMixer>(*backend), 1e-7);
  EXPECT_LE(S4Golden().Error<S4Mixer>(*backend), 5e-6);
  EXPECT_LE(GssGolden().Error<GssMixer>(*backend), 5e-7);
}

// The published f32 runs are off by 5e-7 (S4D) and 2e-6 (GSS); twice that leaves room for another
// order of sums.
TEST(SequenceMixerTest, LayersAgreeWithThePublishedOnes) {
  HIPPODROME_TEST_BACKEND(backend);
  EXPECT_LE(S4dGolden().Error<S4dMixer>(*backend), 1e-6);
  EXPECT_LE(S4Golden().Error<S4Mixer>(*backend), 5e-6);
  EXPECT_LE(GssGolden().Error<GssMixer>(*backend), 4e-6);
}

class MixerModelTest : public testing::TestWithParam<DecoderMixer> {
 protected:
  MixerModelTest()
      : config_(TinyMixerConfig(GetParam())),
        // Large enough for logits of size 1.
        parameters_(*InitialWeights(config_, {.initializer_range = 0.5})) {}

  std::unique_ptr<HybridH3> Load(Backend& backend) {
    InitialSource source(parameters_);
    return std::move(HybridH3::Load(backend, config_, source, DType::kF32)).value();
  }

  static std::vector<float> Logits(Backend& backend, const HybridH3& model,
                                   const std::vector<int32_t>& ids) {
    std::vector<float> logits;
    const absl::Status status =
        Forward(backend, model, ids, {}, [&](int64_t first, std::span<const float> rows) {
          EXPECT_EQ(static_cast<size_t>(first * 32), logits.size());
          logits.insert(logits.end(), rows.begin(), rows.end());
        });
    EXPECT_TRUE(status.ok()) << status;
    return logits;
  }

  const H3Config config_;
  const std::vector<InitialParameter> parameters_;
};

INSTANTIATE_TEST_SUITE_P(Mixers, MixerModelTest,
                         testing::Values(DecoderMixer::kS4d, DecoderMixer::kS4, DecoderMixer::kGss),
                         [](const auto& info) { return Name(info.param); });

TEST_P(MixerModelTest, AgreesWithTheReference) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto reference = MakeReferenceBackend();
  const auto model = Load(*backend);
  const auto truth = Load(*reference);
  for (const int64_t length : {1, 7, 40}) {
    const auto ids = RandomIds(length, config_.vocab_size, 11);
    const auto expected = Logits(*reference, *truth, ids);
    // f32 through three blocks, on logits of size up to 10.
    EXPECT_LE(WorstDifference(Logits(*backend, *model, ids), expected), 1e-4) << length;
  }
}

TEST_P(MixerModelTest, LaterTokensDoNotChangeEarlierLogits) {
  const auto reference = MakeReferenceBackend();
  const auto model = Load(*reference);
  auto ids = RandomIds(9, config_.vocab_size, 11);
  const auto before = Logits(*reference, *model, ids);
  ids[8] = (ids[8] + 1) % 24;
  const auto after = Logits(*reference, *model, ids);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 8 * 32, after.begin()));
  EXPECT_NE(before, after);
}

TEST_P(MixerModelTest, RefusesWhatNeedsAStep) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto model = Load(*backend);
  const auto run = [&](int64_t length, const ForwardMode& mode) {
    return Forward(*backend, *model, RandomIds(length, 24, 1), mode,
                   [](int64_t, std::span<const float>) {});
  };
  const std::string name = std::string("\"") + Name(GetParam()) + "\"";
  EXPECT_THAT(run(4, {.step = true}).message(), HasSubstr(name));
  EXPECT_TRUE(absl::IsInvalidArgument(run(4, {.chunk = 2})));
  EXPECT_TRUE(absl::IsOutOfRange(run(41, {})));
  const auto generator = Generator::Create(*backend, *model, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(generator.status()));
  EXPECT_THAT(generator.status().message(), HasSubstr(name));
}

}  // namespace
}  // namespace hippodrome::sequence_mixer_test
