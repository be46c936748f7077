// Gradients of a whole Hybrid H3 by the CUDA kernels against those by the CPU's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/testing/test_backend.h"
#include "tests/tools/train/learned_model.h"

namespace hippodrome::emulated_decoder_test {
namespace {

// Each backend is within 1e-5 of the published gradients, relative to the largest of a tensor.
constexpr double kTolerance = 2e-5;

const std::string kDirectory = std::string(HIPPODROME_TESTDATA) + "/h3_golden";

double Largest(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max<double>(largest, std::abs(value));
  return largest;
}

constexpr int64_t kSequences = 2;
constexpr int64_t kLength = 24;

TrainingBatch Batch() {
  TrainingBatch batch = {.sequences = kSequences, .length = kLength};
  for (int64_t i = 0; i < kSequences * kLength; ++i) {
    batch.ids.push_back(static_cast<int32_t>(i * 37 % 60));
    batch.labels.push_back(i % 7 == 5 ? -1 : static_cast<int32_t>(i * i % 60));
  }
  return batch;
}

// What a model has learnt from the batch.
struct Lesson {
  double loss;
  std::map<std::string, std::vector<float>> gradients;
};

Lesson Learn(TrainingBackend& backend, DType weights) {
  const H3Config config = ReadH3Config(kDirectory).value();
  const LearnedModel model = LoadToLearn<DecoderTrainee>(
      backend, kDirectory, config, {.sequences = kSequences, .length = kLength}, -1, weights);
  const TrainingBatch batch = Batch();
  const LossTerms terms = model.trainee->Terms(batch);
  Lesson lesson = {.loss = model.trainee->Learn(batch, terms, 0).mean(), .gradients = {}};
  model.tape->CollectGradients();
  for (const Parameter& parameter : model.parameters->all()) {
    if (parameter.gradient.data == nullptr) continue;  // the copy of the tied embedding
    lesson.gradients[parameter.name] = model.Gradient(backend, parameter.name);
  }
  return lesson;
}

TEST(EmulatedDecoderTest, LearnsAsOnTheCpu) {
  HIPPODROME_TEST_BACKEND(cuda);
  const Lesson expected = Learn(*MakeCpuBackend(), DType::kF32);
  const Lesson actual = Learn(*cuda, DType::kF32);
  EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
  for (const auto& [name, golden] : expected.gradients) {
    const std::vector<float>& gradient = actual.gradients.at(name);
    const double tolerance = kTolerance * Largest(golden) + 1e-12;
    for (size_t i = 0; i < golden.size(); ++i) {
      ASSERT_NEAR(gradient[i], golden[i], tolerance) << name << "[" << i << "]";
    }
  }
}

// About 40 roundings to bf16 lie between an embedding and its gradient, each of 2^-9.3 in the mean
// square: together 0.01. Cancellation may multiply that by a few.
TEST(EmulatedDecoderTest, LearnsInBF16) {
  HIPPODROME_TEST_BACKEND(cuda);
  const Lesson expected = Learn(*MakeCpuBackend(), DType::kF32);
  const Lesson actual = Learn(*cuda, DType::kBF16);
  EXPECT_NEAR(actual.loss, expected.loss, 0.01);
  for (const auto& [name, golden] : expected.gradients) {
    const std::vector<float>& gradient = actual.gradients.at(name);
    double size = 0;
    double error = 0;
    for (size_t i = 0; i < golden.size(); ++i) {
      size += std::pow(golden[i], 2);
      error += std::pow(gradient[i] - golden[i], 2);
    }
    EXPECT_LE(std::sqrt(error), 0.04 * std::sqrt(size)) << name;
  }
}

}  // namespace
}  // namespace hippodrome::emulated_decoder_test
