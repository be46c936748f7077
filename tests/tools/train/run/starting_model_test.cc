#include "tools/train/run/starting_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace hippodrome::starting_model_test
