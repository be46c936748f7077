// Gradients of a whole Hybrid H3 against those of the published code in double precision.
#include "tools/train/step/decoder_trainee.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/make_backend.h"
#include "tests/reference/reference_backend.h"
#include "tests/tools/train/learned_model.h"
#include "tools/train/step/micro_batch.h"

namespace hippodrome::decoder_trainee_test {
namespace {

const std::string kDirectory = std::string(HIPPODROME_TESTDATA) + "/h3_golden";

class DecoderTraineeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto config = ReadH3Config(kDirectory);
    ASSERT_TRUE(config.ok()) << config.status();
    config_ = *config;
    golden_ = OpenFile(kDirectory + "/gradients.safetensors");
    const auto vectors = OpenFile(kDirectory + "/vectors.safetensors");
    batch_ = {.sequences = 2, .length = 64, .ids = Integers(*vectors, "ids_L64")};
    batch_.labels.assign(128, -1);
    for (size_t i = 0; i + 1 < 128; ++i) {
      if (i % 64 != 63) batch_.labels[i] = batch_.ids[i + 1];
    }
  }

  LearnedModel Load(TrainingBackend& backend, bool recompute = false) const {
    return LoadToLearn<DecoderTrainee>(backend, kDirectory, config_,
                                       {.sequences = 2, .length = 64, .recompute = recompute});
  }

  // The largest of the errors that `error` makes of golden and actual gradients, over parameters.
  template <typename Error>
  double Worst(TrainingBackend& backend, const LearnedModel& model, const Error& error) const {
    double worst = 0;
    for (const Parameter& parameter : model.parameters->all()) {
      if (parameter.gradient.data == nullptr) continue;  // the copy of the tied embedding
      const std::vector<float> golden = *ToFloats(*golden_->Find(parameter.name));
      worst = std::max(worst, error(golden, model.Gradient(backend, parameter.name)));
    }
    return worst;
  }

  H3Config config_;
  std::unique_ptr<SafetensorsFile> golden_;
  TrainingBatch batch_;
};

// Relative to the largest element of the tensor; those below the published floor count as it.
double ErrorOfLargest(const std::vector<float>& golden, const std::vector<float>& actual) {
  double largest = 1e-7;
  double error = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    largest = std::max<double>(largest, std::abs(golden[i]));
    error = std::max<double>(error, std::abs(double{golden[i]} - actual[i]));
  }
  return error / largest;
}

double ErrorOfEach(const std::vector<float>& golden, const std::vector<float>& actual) {
  double error = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    // f32 holds the golden values to 6e-8.
    const double size = std::abs(double{golden[i]}) + 1e-7 / 1e-5;
    error = std::max(error, std::abs(double{golden[i]} - actual[i]) / size);
  }
  return error;
}

TEST_F(DecoderTraineeTest, ReferenceGivesThePublishedGradients) {
  const auto backend = MakeReferenceBackend();
  const LearnedModel model = Load(*backend);
  const BatchLoss loss = model.trainee->Learn(batch_, {.count = 126}, 0);
  model.tape->CollectGradients();
  EXPECT_EQ(loss.terms, 126);
  EXPECT_NEAR(loss.mean(), (*ToFloats(*golden_->Find("loss_f64")))[0], 1e-6);
  EXPECT_LT(Worst(*backend, model, ErrorOfEach), 1e-5);
}

TEST_F(DecoderTraineeTest, CpuGivesThePublishedGradients) {
  const auto backend = MakeCpuBackend();
  const LearnedModel model = Load(*backend);
  const BatchLoss loss = model.trainee->Learn(batch_, {.count = 126}, 0);
  model.tape->CollectGradients();
  EXPECT_NEAR(loss.mean(), (*ToFloats(*golden_->Find("loss_f64")))[0], 1e-5);
  EXPECT_LT(Worst(*backend, model, ErrorOfLargest), 1e-5);
}

TEST_F(DecoderTraineeTest, RecomputingChangesNoBit) {
  const auto backend = MakeCpuBackend();
  const LearnedModel kept = Load(*backend);
  const LearnedModel recomputed = Load(*backend, true);
  EXPECT_EQ(kept.trainee->Learn(batch_, {.count = 126}, 0).sum,
            recomputed.trainee->Learn(batch_, {.count = 126}, 0).sum);
  kept.tape->CollectGradients();
  recomputed.tape->CollectGradients();
  for (const Parameter& parameter : kept.parameters->all()) {
    if (parameter.gradient.data == nullptr) continue;
    EXPECT_EQ(kept.Gradient(*backend, parameter.name),
              recomputed.Gradient(*backend, parameter.name))
        << parameter.name;
  }
}

TEST_F(DecoderTraineeTest, MicroBatchesSumUp) {
  const auto backend = MakeCpuBackend();
  const LearnedModel model = Load(*backend);
  BatchLoss loss = model.trainee->Learn(SliceBatch(batch_, 0, 1), {.count = 126}, 0);
  loss += model.trainee->Learn(SliceBatch(batch_, 1, 1), {.count = 126}, 1);
  model.tape->CollectGradients();
  EXPECT_EQ(loss.terms, 126);
  EXPECT_LT(Worst(*backend, model, ErrorOfLargest), 1e-5);
}

TEST_F(DecoderTraineeTest, EvaluationNeitherLearnsNorForgets) {
  const auto backend = MakeCpuBackend();
  const LearnedModel model = Load(*backend);
  const BatchLoss loss = model.trainee->Evaluate(batch_, true);
  EXPECT_EQ(loss.judged, 126);
  EXPECT_NEAR(loss.mean(), (*ToFloats(*golden_->Find("loss_f64")))[0], 1e-5);
  for (const Parameter& parameter : model.parameters->all()) {
    if (parameter.gradient.data == nullptr) continue;  // the copy of the tied embedding
    for (const float value : model.Gradient(*backend, parameter.name)) ASSERT_EQ(value, 0.0f);
  }
}

TEST_F(DecoderTraineeTest, ThreadsChangeNoBit) {
  const auto one = MakeCpuBackend({.threads = 1});
  const auto two = MakeCpuBackend({.threads = 2});
  const LearnedModel a = Load(*one);
  const LearnedModel b = Load(*two);
  EXPECT_EQ(a.trainee->Learn(batch_, {.count = 126}, 0).sum,
            b.trainee->Learn(batch_, {.count = 126}, 0).sum);
  a.tape->CollectGradients();
  b.tape->CollectGradients();
  for (const Parameter& parameter : a.parameters->all()) {
    if (parameter.gradient.data == nullptr) continue;
    EXPECT_EQ(a.Gradient(*one, parameter.name), b.Gradient(*two, parameter.name)) << parameter.name;
  }
}

}  // namespace
}  // namespace hippodrome::decoder_trainee_test
