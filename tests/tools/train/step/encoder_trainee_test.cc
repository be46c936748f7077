// Losses and gradients of encoders with every head, on the CPU and in double precision.
#include "tools/train/step/encoder_trainee.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/initialization/initial_weights.h"
#include "kernels/make_backend.h"
#include "tests/reference/reference_backend.h"
#include "tests/tools/train/learned_model.h"
#include "tools/train/step/micro_batch.h"

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
    {EncoderHead::kQuestionAnswering, 2, {-1, 3, 2, 5}, 2},
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
    const LossTerms terms = actual.trainee->Terms(batch);
    ASSERT_EQ(terms.count, task.terms);
    const BatchLoss loss = expected.trainee->Learn(batch, terms, 0);
    EXPECT_NEAR(actual.trainee->Learn(batch, terms, 0).sum, loss.sum, 1e-5 * std::abs(loss.sum));
    EXPECT_EQ(loss.terms, task.terms);
    actual.tape->CollectGradients();
    expected.tape->CollectGradients();
    double all = 0;
    for (const Parameter& parameter : actual.parameters->all()) {
      if (parameter.gradient.data == nullptr) continue;
      const auto a = actual.Gradient(*cpu, parameter.name);
      const auto e = expected.Gradient(*reference, parameter.name);
      double largest = 2e-3;  // gradients far below the others' are rounding of theirs
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
    LossTerms terms = model.trainee->Terms(batch);
    terms.count = 1;  // the slope of the sum
    model.trainee->Learn(batch, terms, 0);
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

// Questions whose answers lie outside their window, as loss = (mean over first tokens + mean over
// last tokens) / 2 sees them: each mean is over those that lie inside.
class AnswerLossTest : public testing::Test {
 protected:
  AnswerLossTest() : model_(Make(*backend_, config_)) {}

  TrainingBatch Answers(const std::vector<int32_t>& labels) const {
    TrainingBatch batch = TinyBatch();
    batch.labels = labels;
    return batch;
  }
  double Loss(const std::vector<int32_t>& labels) {
    return model_.trainee->Evaluate(Answers(labels), false).mean();
  }
  std::vector<float> Gradient() {
    model_.tape->CollectGradients();
    return model_.Gradient(*backend_, "qa_outputs.weight");
  }

  const BigsConfig config_ = TinyConfig(EncoderHead::kQuestionAnswering, 2);
  const std::unique_ptr<TrainingBackend> backend_ = MakeReferenceBackend();
  const LearnedModel model_;
};

TEST_F(AnswerLossTest, MeansAreOverTheAnswersInside) {
  // Of each sequence alone, by the other's answer being outside.
  const double first0 = Loss({1, 5, 5, 5}), last0 = Loss({5, 3, 5, 5});
  const double first1 = Loss({5, 5, 0, 5}), last1 = Loss({5, 5, 5, 4});
  EXPECT_GT(std::min({first0, last0, first1, last1}), 0.1);
  constexpr double kRounding = 1e-12;
  EXPECT_NEAR(Loss({1, 3, 0, 4}), (first0 + first1 + last0 + last1) / 2, kRounding);
  EXPECT_NEAR(Loss({1, 3, 5, 5}), first0 + last0, kRounding);
  EXPECT_NEAR(Loss({1, 3, -1, 4}), first0 + (last0 + last1) / 2, kRounding);
  EXPECT_NEAR(Loss({1, 5, 0, 4}), (first0 + first1) / 2 + last1, kRounding);
}

TEST_F(AnswerLossTest, IsZeroWhereAllLieOutside) {
  const TrainingBatch batch = Answers({5, -1, 7, 5});
  const BatchLoss loss = model_.trainee->Learn(batch, model_.trainee->Terms(batch), 0);
  EXPECT_EQ(loss.mean(), 0);
  for (const float value : Gradient()) EXPECT_EQ(value, 0);
  EXPECT_EQ(model_.trainee->Evaluate(batch, false).mean(), 0);
}

TEST_F(AnswerLossTest, PartsOfABatchMakeItsLossAndGradients) {
  const TrainingBatch batch = Answers({1, 5, 0, 4});
  const LossTerms terms = model_.trainee->Terms(batch);
  const BatchLoss whole = model_.trainee->Learn(batch, terms, 0);
  const std::vector<float> expected = Gradient();
  model_.tape->ZeroGradients();
  BatchLoss parts;
  for (int64_t i = 0; i < 2; ++i) {
    parts += model_.trainee->Learn(SliceBatch(batch, i, 1), terms, 0);
  }
  EXPECT_NEAR(parts.mean(), whole.mean(), 1e-12);
  const std::vector<float> actual = Gradient();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6);
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
