#include "tools/commands/forward_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/safetensors.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"
#include "tests/testing/temporary_directory.h"
#include "tools/command_line/encoder_input.h"

namespace hippodrome::forward_command_test {
namespace {

using testing::ElementsAre;

// Three inputs of five tokens through a model with some head.
class EncoderLogitsTest : public testing::Test {
 protected:
  EncoderLogitsTest() {
    inputs_ = OneEncoderInput(RandomIds(15, 40, 1));
    inputs_.batch = 3;
    inputs_.length = 5;
  }

  absl::Status Write(EncoderHead head) {
    BigsConfig config = TinyBigsConfig();
    config.head = head;
    model_ = MakeTestBigs(*backend_, config);
    return WriteEncoderLogits(*backend_, *model_, inputs_, path_);
  }
  std::map<std::string, TensorView> Read() {
    file_ = SafetensorsFile::Open(path_).value();
    return file_->tensors();
  }
  std::vector<float> Forward() {
    std::vector<float> all;
    EXPECT_TRUE(EncoderForward(*backend_, *model_, inputs_, [&](std::span<const float> logits) {
                  all.insert(all.end(), logits.begin(), logits.end());
                }).ok());
    return all;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.File("out.safetensors");
  std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 1});
  std::unique_ptr<Bigs> model_;
  std::unique_ptr<SafetensorsFile> file_;
  EncoderInputs inputs_;
};

TEST_F(EncoderLogitsTest, HeadsGiveTheirShapes) {
  const std::pair<EncoderHead, std::vector<int64_t>> shapes[] = {
      {EncoderHead::kMaskedLm, {3, 5, 40}},
      {EncoderHead::kTokenClassification, {3, 5, 3}},
      {EncoderHead::kSequenceClassification, {3, 3}},
      {EncoderHead::kMultipleChoice, {3}},
  };
  for (const auto& [head, shape] : shapes) {
    const absl::Status status = Write(head);
    ASSERT_TRUE(status.ok()) << status;
    const auto tensors = Read();
    ASSERT_EQ(tensors.size(), 1u);
    const TensorView& logits = tensors.at("logits");
    EXPECT_EQ(logits.dtype, DType::kF32);
    EXPECT_EQ(logits.shape, shape) << Name(head);
    EXPECT_EQ(ToFloats(logits).value(), Forward()) << Name(head);
  }
}

TEST_F(EncoderLogitsTest, QuestionAnsweringGivesStartsAndEnds) {
  const absl::Status status = Write(EncoderHead::kQuestionAnswering);
  ASSERT_TRUE(status.ok()) << status;
  const auto tensors = Read();
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_THAT(tensors.at("start_logits").shape, ElementsAre(3, 5));
  EXPECT_THAT(tensors.at("end_logits").shape, ElementsAre(3, 5));
  const std::vector<float> starts = ToFloats(tensors.at("start_logits")).value();
  const std::vector<float> ends = ToFloats(tensors.at("end_logits")).value();
  std::vector<float> pairs;
  for (size_t i = 0; i < starts.size(); ++i) pairs.insert(pairs.end(), {starts[i], ends[i]});
  EXPECT_EQ(pairs, Forward());
}

TEST_F(EncoderLogitsTest, AfterAnErrorThereIsNoFile) {
  inputs_.mask.assign(15, 1);
  std::fill_n(inputs_.mask.begin() + 5, 5, 0);
  const absl::Status status = Write(EncoderHead::kSequenceClassification);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("1"));
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(Write(EncoderHead::kNone).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace hippodrome::forward_command_test
