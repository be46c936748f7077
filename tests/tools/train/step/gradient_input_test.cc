#include "tools/train/step/gradient_input.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome::gradient_input_test {
namespace {

constexpr int64_t kSequences = 4;
constexpr int64_t kLength = 5;

BigsConfig Config() {
  return {.vocab_size = 8,
          .max_position_embeddings = 6,
          .head = EncoderHead::kQuestionAnswering,
          .labels = {"start", "end"}};
}

// A file of ids and answers.
std::string Write(const std::vector<int64_t>& ids, const std::vector<int64_t>& first,
                  const std::vector<int64_t>& last) {
  const std::string path = testing::TempDir() + "gradient_input_test.safetensors";
  const auto writer =
      SafetensorsWriter::Create(path, {{"input_ids", DType::kI64, {kSequences, kLength}},
                                       {"start_positions", DType::kI64, {kSequences}},
                                       {"end_positions", DType::kI64, {kSequences}}});
  EXPECT_TRUE(writer.ok()) << writer.status();
  for (const auto* values : {&ids, &first, &last}) {
    EXPECT_TRUE((*writer)->Append(std::as_bytes(std::span(*values))).ok());
  }
  EXPECT_TRUE((*writer)->Finish().ok());
  return path;
}

TEST(GradientInputTest, AnswersOutsideTheirSequenceAreTakenAsThePublishedModelDoes) {
  const std::vector<int64_t> ids(kSequences * kLength, 1);
  const auto batch =
      ReadGradientInput(Write(ids, {0, 4, 5, -3}, {4, 6, INT64_MAX, INT64_MIN}), Config());
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->labels, (std::vector<int32_t>{0, 4, 4, -1, -1, -1, 0, 0}));
}

TEST(GradientInputTest, IdsOutOfRangeAreNamed) {
  std::vector<int64_t> ids(kSequences * kLength, 1);
  ids[7] = 8;
  const std::string path = Write(ids, {0, 0, 0, 0}, {0, 0, 0, 0});
  const auto batch = ReadGradientInput(path, Config());
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(Message(batch.status()), path + ": input_ids 7 is 8, expected a value in [0, 8)");
}

}  // namespace
}  // namespace hippodrome::gradient_input_test
