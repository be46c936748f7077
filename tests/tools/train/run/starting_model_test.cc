#include "tools/train/run/starting_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_matrix.h"
#include "kernels/make_backend.h"
#include "kernels/quantized_group.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::starting_model_test {
namespace {

std::string ErrorOf(const std::string& config, Objective objective, double attention_dropout) {
  TrainingRun run;
  run.model.config = config;
  run.objective = objective;
  run.length = 8;
  run.dropout.attention = attention_dropout;
  const auto model = StartingConfig(run);
  return model.ok() ? "" : std::string(model.status().message());
}

const char* const kDecoder = R"({"model_type": "h3", "d_model": 8, "n_layer": 1, "vocab_size": 9,
                                 "max_position_embeddings": 7})";
const char* const kEncoder = R"({"model_type": "BiGS", "hidden_size": 8, "num_hidden_layers": 1,
                                 "intermediate_size": 8, "num_ssm": 2, "vocab_size": 9,
                                 "max_position_embeddings": 8})";

TEST(StartingModelTest, RefusesWhatAFamilyCannotBeTrainedFor) {
  EXPECT_THAT(ErrorOf(kEncoder, Objective::kCausalLm, 0),
              testing::HasSubstr("objective: causal_lm needs a model of type \"h3\""));
  EXPECT_THAT(ErrorOf(kDecoder, Objective::kMaskedLm, 0),
              testing::HasSubstr("objective: masked_lm needs a model of type \"BiGS\""));
  EXPECT_THAT(ErrorOf(kDecoder, Objective::kCausalLm, 0),
              testing::HasSubstr("length: 8, expected at most the 7 positions"));
  EXPECT_THAT(ErrorOf(kEncoder, Objective::kMaskedLm, 0.1),
              testing::HasSubstr("dropout.attention: only decoders"));
  EXPECT_EQ(ErrorOf(kEncoder, Objective::kMaskedLm, 0), "");
}

constexpr int kRows = 16;  // of 9 tokens
constexpr char kMatrix[] = "backbone.embeddings.word_embeddings.weight";

// A directory that has nothing but the embedding in `integers`, and what training begins with.
class StartFromIntegers : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    std::ofstream(directory_.File("config.json")) << kDecoder;
    for (int i = 0; i < kRows * 8; ++i) values_.push_back(static_cast<float>(i * i % 17 - 8) / 16);
  }

  void Write(std::vector<TensorSpec> specs) {
    const QuantizedRows rows = QuantizeRows(values_, 8, GetParam());
    const auto writer = *SafetensorsWriter::Create(directory_.File("model.safetensors"), specs);
    ASSERT_TRUE(writer->Append(rows.values).ok());
    ASSERT_TRUE(writer->Append(std::as_bytes(std::span(rows.scales))).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }

  absl::Status Start() {
    TrainingRun run;
    run.model.from = directory_.path();
    run.objective = Objective::kCausalLm;
    run.length = 4;
    run.initialization.measure = "diag-lin";
    run.initialization.scaling = "hippo";
    return AddStartingParameters(run, *StartingConfig(run), parameters_);
  }

  TemporaryDirectory directory_;
  std::vector<float> values_;
  std::unique_ptr<TrainingBackend> backend_ = MakeCpuBackend({.threads = 1});
  Parameters parameters_{*backend_};
};
INSTANTIATE_TEST_SUITE_P(Types, StartFromIntegers, testing::Values(DType::kI8, DType::kI4));

TEST_P(StartFromIntegers, TakesTheirProductsWithTheScales) {
  Write(StoredSpecs({kMatrix, GetParam(), {kRows, 8}}));
  const absl::Status started = Start();
  ASSERT_TRUE(started.ok()) << started;
  const std::vector<float>& taken = parameters_.Find(kMatrix)->host;
  ASSERT_EQ(taken.size(), values_.size());
  for (size_t row = 0; row < kRows; ++row) {
    int8_t integers[8];
    const std::span<const float> of_row = std::span(values_).subspan(row * 8, 8);
    const float scale = ToFloat(QuantizeGroup(GetParam(), of_row, integers));
    for (size_t k = 0; k < 8; ++k) {
      EXPECT_EQ(taken[row * 8 + k], scale * static_cast<float>(integers[k]));
    }
  }
}

TEST_P(StartFromIntegers, NamesTheTensorOfAnotherShape) {
  std::vector<TensorSpec> specs = StoredSpecs({kMatrix, GetParam(), {kRows, 8}});
  std::swap(specs[0].shape[0], specs[0].shape[1]);
  Write(specs);
  EXPECT_THAT(Start().message(), testing::HasSubstr(kMatrix));
  specs = StoredSpecs({kMatrix, GetParam(), {kRows, 8}});
  std::swap(specs[1].shape[0], specs[1].shape[1]);
  Write(specs);
  EXPECT_THAT(Start().message(), testing::HasSubstr(std::string(kMatrix) + "_scale"));
}

}  // namespace
}  // namespace hippodrome::starting_model_test
