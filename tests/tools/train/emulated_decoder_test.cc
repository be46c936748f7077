// Gradients of a whole Hybrid H3 by the CUDA kernels against those by the CPU's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/testing/test_backend.h"
#include "tests/tools/train/learned_model.h"

namespace hippodrome {
namespace {

// Each backend is within 1e-5 of the published gradients, relative to the largest of a tensor.
constexpr double kTolerance = 2e-5;

const std::string kDirectory = std::string(HIPPODROME_TESTDATA) + "/h3_golden";

double Largest(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max<double>(largest, std::abs(value));
  return largest;
}

TEST(EmulatedDecoderTest, LearnsAsOnTheCpu) {
  constexpr int64_t kSequences = 2, kLength = 24;
  const auto config = ReadH3Config(kDirectory);
  ASSERT_TRUE(config.ok()) << config.status();
  TrainingBatch batch = {.sequences = kSequences, .length = kLength};
  for (int64_t i = 0; i < kSequences * kLength; ++i) {
    batch.ids.push_back(static_cast<int32_t>(i * 37 % 60));
    batch.labels.push_back(i % 7 == 5 ? -1 : static_cast<int32_t>(i * i % 60));
  }
  const TraineeSize size = {.sequences = kSequences, .length = kLength};
  const auto cpu = MakeCpuBackend();
  HIPPODROME_TEST_BACKEND(cuda);
  const LearnedModel expected = LoadToLearn<DecoderTrainee>(*cpu, kDirectory, *config, size);
  const LearnedModel actual = LoadToLearn<DecoderTrainee>(*cuda, kDirectory, *config, size);

  const double scale = 1 / static_cast<double>(expected.trainee->Terms(batch));
  EXPECT_NEAR(actual.trainee->Learn(batch, scale, 0).mean(),
              expected.trainee->Learn(batch, scale, 0).mean(), 1e-5);
  expected.tape->CollectGradients();
  actual.tape->CollectGradients();
  for (const Parameter& parameter : expected.parameters->all()) {
    if (parameter.gradient.data == nullptr) continue;  // the copy of the tied embedding
    const std::vector<float> golden = expected.Gradient(*cpu, parameter.name);
    const std::vector<float> gradient = actual.Gradient(*cuda, parameter.name);
    const double tolerance = kTolerance * Largest(golden) + 1e-12;
    for (size_t i = 0; i < golden.size(); ++i) {
      ASSERT_NEAR(gradient[i], golden[i], tolerance) << parameter.name << "[" << i << "]";
    }
  }
}

}  // namespace
}  // namespace hippodrome
