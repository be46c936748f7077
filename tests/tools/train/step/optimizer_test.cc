// Five steps of AdamW on a BiGS encoder, as the published code made them.
#include "tools/train/step/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/make_backend.h"
#include "tests/tools/train/learned_model.h"

namespace hippodrome::optimizer_test {
namespace {

const std::string kDirectory = std::string(HIPPODROME_TESTDATA) + "/bigs_golden/masked_lm";

bool AllBuckets(size_t) { return true; }

TrainingBatch GoldenBatch(const nlohmann::json& trace) {
  const auto vectors = OpenFile(kDirectory + "/vectors.safetensors");
  TrainingBatch batch = {.sequences = 2,
                         .length = 9,
                         .ids = Integers(*vectors, "len9.input_ids"),
                         .types = Integers(*vectors, "len9.token_type_ids"),
                         .mask = Integers(*vectors, "len9.attention_mask")};
  for (const int32_t label : trace["labels"].get<std::vector<int32_t>>()) {
    batch.labels.push_back(label == -100 ? -1 : label);
  }
  return batch;
}

// The gradients have an error of up to 1e-6 of their size, the losses here one of 1e-6, and AdamW's
// first step of a parameter with a gradient near zero depends on its sign: hence single precision's
// 1e-5 of the whole.
TEST(OptimizerTest, FiveStepsAsPublished) {
  std::ifstream file(kDirectory + "/adamw_trace.json");
  const nlohmann::json trace = nlohmann::json::parse(file);
  const TrainingBatch batch = GoldenBatch(trace);
  const auto backend = MakeCpuBackend();
  const auto config = ReadBigsConfig(kDirectory);
  ASSERT_TRUE(config.ok()) << config.status();
  const LearnedModel model = LoadToLearn<EncoderTrainee>(
      *backend, kDirectory, *config, {.sequences = 2, .length = 9}, /*padding_id=*/0);
  Optimizer optimizer(*backend, TrainedBuckets(*model.parameters), AllBuckets, ModelFamily::kBigs,
                      {.rate = 1e-3, .beta2 = 0.98, .epsilon = 1e-6, .weight_decay = 0.01});
  const LossTerms terms = model.trainee->Terms(batch);
  for (int64_t step = 1; step <= 6; ++step) {
    model.tape->ZeroGradients();
    const double loss = model.trainee->Learn(batch, terms, 0).mean();
    const double published = trace["losses"][static_cast<size_t>(step - 1)];
    EXPECT_NEAR(loss, published, 1e-5 * published) << "step " << step;
    if (step == 6) break;
    model.tape->CollectGradients();
    optimizer.Step(step, 1, 0);
    model.tape->Update();
  }
  for (Parameter& p : model.parameters->all()) {
    if (p.gradient.data == nullptr) continue;
    model.parameters->Fetch(p);
    double squares = 0, sum = 0, size = 0;
    for (const float value : p.host) {
      squares += double{value} * value;
      sum += value;
      size += std::abs(value);
    }
    const std::string& name = p.name;
    const double l2 = trace["param_l2"][name];
    EXPECT_NEAR(std::sqrt(squares), l2, 1e-5 * l2) << name;
    EXPECT_NEAR(sum, trace["param_sum"][name].get<double>(), 1e-5 * size) << name;
  }
}

TEST(OptimizerTest, TrainsWhatItOwnsAlone) {
  const auto backend = MakeCpuBackend({.threads = 1});
  Parameters parameters(*backend);
  parameters.Add("a", {3, 1}, {1, 1, 1});
  const OwnedTensor gradient = backend->NewTensor(3, 1);
  backend->Upload(std::vector<float>{1, 2, 3}, gradient);
  parameters.Find("a")->gradient = gradient;
  Optimizer optimizer(*backend, TrainedBuckets(parameters, 1),
                      [](size_t bucket) { return bucket == 1; }, ModelFamily::kH3, {.rate = 0.1});
  EXPECT_EQ(optimizer.SquaredNorms(), (std::vector<double>{0, 4, 0}));
  optimizer.Step(1, 1, 0);
  parameters.Fetch(*parameters.Find("a"));
  EXPECT_EQ(parameters.Find("a")->host[0], 1);
  EXPECT_NEAR(parameters.Find("a")->host[1], 0.9, 1e-6);
  EXPECT_EQ(parameters.Find("a")->host[2], 1);
}

TEST(OptimizerTest, ClipsTheNormOfAllGradients) {
  const auto backend = MakeCpuBackend({.threads = 1});
  Parameters parameters(*backend);
  parameters.Add("a", {2}, {1, 1});
  parameters.Add("b", {1}, {1});
  std::vector<OwnedTensor> gradients;
  for (Parameter& parameter : parameters.all()) {
    gradients.push_back(backend->NewTensor(1, static_cast<int64_t>(parameter.host.size())));
    parameter.gradient = gradients.back();
  }
  backend->Upload(std::vector<float>{2, 4}, parameters.Find("a")->gradient);
  backend->Upload(std::vector<float>{4}, parameters.Find("b")->gradient);
  const std::vector<Bucket> buckets = TrainedBuckets(parameters, 2);
  Optimizer optimizer(*backend, buckets, AllBuckets, ModelFamily::kH3, {.rate = 0.1, .clip = 3});
  EXPECT_NEAR(GradientNorm(optimizer.SquaredNorms()), 6, 1e-6);
  optimizer.Step(1, 1, 6);
  std::vector<float> m(2);
  ASSERT_EQ(optimizer.buckets()[1][0].block.parameter->name, "a");
  backend->Download(optimizer.buckets()[1][0].m, m);
  EXPECT_NEAR(m[0], 0.1, 1e-7);  // (1 - beta1) * 2 * clip / norm
  EXPECT_NEAR(m[1], 0.2, 1e-7);
}

}  // namespace
}  // namespace hippodrome::optimizer_test
