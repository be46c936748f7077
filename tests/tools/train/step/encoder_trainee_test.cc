// Losses and gradients of encoders with every head, on the CPU and in double precision.
#include "tools/train/step/encoder_trainee.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/initialization/initial_weights.h"
#include "kernels/make_backend.h"
#include "tests/reference/reference_backend.h"
#include "tests/tools/train/learned_model.h"

namespace hippodrome::encoder_trainee_test {
namespace {

BigsConfig TinyConfig(EncoderHead head, int64_t labels) {
  BigsConfig config = {.vocab_size = 23,
                       .hidden_size = 8,
                       .num_hidden_layers = 2,
                       .intermediate_size = 12,
                       .num_ssm = 4,
                       .max_position_embeddings = 6,
                       .head = head};
  for (int64_t i = 0; i < labels; ++i) config.labels.push_back("label " + std::to_string(i));
  return config;
}

// Two sequences of five tokens, the second one padded.
TrainingBatch TinyBatch() {
  return {.sequences = 2,
          .length = 5,
          .ids = {2, 7, 1, 8, 3, 2, 5, 3, 0, 0},
          .types = {0, 0, 0, 1, 1, 0, 0, 0, 0, 0},
          .mask = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0}};
}

LearnedModel Make(TrainingBackend& backend, const BigsConfig& config) {
  LearnedModel model;
  model.parameters = std::make_unique<Parameters>(backend);
  for (InitialParameter& p : InitialWeights(config, {.seed = 5, .initializer_range = 0.3})) {
    model.parameters->Add(p.name, p.shape, std::move(p.values));
  }
  model.tape = std::make_unique<Tape>(backend, *model.parameters,
                                      TapeOptions{.longest = 5, .padding_id = 0});
  auto trainee = EncoderTrainee::Create(*model.tape, *model.parameters, config, DType::kF32,
                                        {.sequences = 2, .length = 5});
  EXPECT_TRUE(trainee.ok()) << trainee.status();
  model.trainee = *std::move(trainee);
  return model;
}

struct Case {
  EncoderHead head;
  int64_t labels;
  std::vector<int32_t> targets;
  int64_t terms;
};

TrainingBatch Labelled(const Case& task) {
  TrainingBatch batch = TinyBatch();
  if (task.labels == 1) {
    batch.targets = {0.5f, -1.25f};
  } else {
    batch.labels = task.targets;
  }
  return batch;
}

const Case kCases[] = {
    {EncoderHead::kMaskedLm, 0, {-1, 4, -1, 22, -1, -1, -1, 9, -1, -1}, 3},
    {EncoderHead::kSequenceClassification, 3, {2, 0}, 2},
    {EncoderHead::kSequenceClassification, 1, {}, 2},
    {EncoderHead::kTokenClassification, 3, {-1, 0, 2, 1, -1, -1, 2, -1, -1, -1}, 4},
    {EncoderHead::kQuestionAnswering, 2, {1, 3, 0, 0}, 2},
};

TEST(EncoderTraineeTest, GradientsAgreeWithTheReference) {
  for (const Case& task : kCases) {
    SCOPED_TRACE(std::string(Name(task.head)) + " " + std::to_string(task.labels));
    const BigsConfig config = TinyConfig(task.head, task.labels);
    const TrainingBatch batch = Labelled(task);
    const auto cpu = MakeCpuBackend();
    const auto reference = MakeReferenceBackend();
    const LearnedModel actual = Make(*cpu, config);
    const LearnedModel expected = Make(*reference, config);
    ASSERT_EQ(actual.trainee->Terms(batch), task.terms);
    const double scale = 1 / static_cast<double>(task.terms);
    const BatchLoss loss = expected.trainee->Learn(batch, scale, 0);
    EXPECT_NEAR(actual.trainee->Learn(batch, scale, 0).sum, loss.sum, 1e-5 * std::abs(loss.sum));
    EXPECT_EQ(loss.terms, task.terms);
    actual.tape->CollectGradients();
    expected.tape->CollectGradients();
    double all = 0;
    for (const Parameter& parameter : actual.parameters->all()) {
      if (parameter.gradient.data == nullptr) continue;
      const auto a = actual.Gradient(*cpu, parameter.name);
      const auto e = expected.Gradient(*reference, parameter.name);
      double largest = 1e-3;  // gradients far below the others' are rounding of theirs
      for (const float value : e) largest = std::max<double>(largest, std::abs(value));
      for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_NEAR(a[i], e[i], 1e-5 * largest) << parameter.name << " " << i;
        all += std::abs(e[i]);
      }
    }
    EXPECT_GT(all, 0);
  }
}

// The slope of the loss along one matrix, by central differences in double precision.
TEST(EncoderTraineeTest, GradientsAreSlopesOfTheLoss) {
  const std::string name = "bigs.encoder.layer.1.do.weight";
  for (const Case& task : kCases) {
    SCOPED_TRACE(std::string(Name(task.head)) + " " + std::to_string(task.labels));
    const BigsConfig config = TinyConfig(task.head, task.labels);
    const TrainingBatch batch = Labelled(task);
    const auto backend = MakeReferenceBackend();
    const LearnedModel model = Make(*backend, config);
    model.trainee->Learn(batch, 1, 0);
    const std::vector<float> gradient = model.Gradient(*backend, name);
    Parameter& parameter = *model.parameters->Find(name);
    const std::vector<float> start = parameter.host;
    const auto loss_at = [&](float step) {
      std::vector<float> moved = start;
      for (size_t i = 0; i < moved.size(); ++i) moved[i] += step * gradient[i];
      model.parameters->Store(parameter, moved);
      model.tape->Update();
      return model.trainee->Evaluate(batch, false).sum;
    };
    double squares = 0;
    for (const float value : gradient) squares += double{value} * value;
    constexpr float kStep = 1.0f / 256;
    const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    EXPECT_NEAR(slope, squares, 1e-3 * squares);  // the curvature over the step
  }
}

TEST(EncoderTraineeTest, RefusesHeadsThatItCannotTrain) {
  const auto backend = MakeCpuBackend({.threads = 1});
  Parameters parameters(*backend);
  Tape tape(*backend, parameters, {.longest = 5});
  const auto trainee =
      EncoderTrainee::Create(tape, parameters, TinyConfig(EncoderHead::kMultipleChoice, 0),
                             DType::kF32, {.sequences = 1, .length = 5});
  EXPECT_FALSE(trainee.ok());
}

}  // namespace
}  // namespace hippodrome::encoder_trainee_test
