#include "tools/train/checkpoint/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/status.h"
#include "kernels/dtype.h"
#include "tests/testing/temporary_directory.h"
#include "tools/convert/model_card.h"

namespace hippodrome::saved_model_test {
namespace {

using testing::HasSubstr;

constexpr const char* kEncoder =
    R"({"model_type": "BiGS", "vocab_size": 6, "hidden_size": 8, "num_hidden_layers": 1})";

// Tensor i holds 1, 1 + 2^-9, .. plus i: half of these numbers are no bf16.
std::vector<float> Values(size_t tensor, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = 1 + static_cast<float>(tensor) + static_cast<float>(i) * 0x1p-9F;
  }
  return values;
}

class SavedModelTest : public testing::Test {
 protected:
  SavedModelTest() {
    model_.config_json = kEncoder;
    model_.run_json = "{\"seed\": 1}";
    model_.card = ModelCardText({.config_json = kEncoder}).value();
    model_.tensors = {{"a.weight", DType::kBF16, {2, 3}}, {"a.bias", DType::kF32, {2}}};
  }

  absl::Status Save() {
    std::vector<float> values;
    return SaveModel(path_, model_, [&](size_t i) -> absl::StatusOr<std::span<const float>> {
      values = Values(i, i == 0 ? 6 : 2);
      return std::span<const float>(values);
    });
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.File("out/model");
  ModelToSave model_;
};

TEST_F(SavedModelTest, WritesTheFilesOfAModel) {
  const absl::Status saved = Save();
  ASSERT_TRUE(saved.ok()) << saved;
  EXPECT_EQ(FileContent(path_ + "/config.json"), std::string(kEncoder) + "\n");
  EXPECT_EQ(FileContent(path_ + "/training.json"), "{\"seed\": 1}\n");
  EXPECT_EQ(FileContent(path_ + "/README.md"), model_.card);
  const auto file = SafetensorsFile::Open(path_ + "/model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ToFloats(*(*file)->Find("a.bias")).value(), Values(1, 2));
  const TensorView& matrix = *(*file)->Find("a.weight");
  EXPECT_EQ(matrix.dtype, DType::kBF16);
  std::vector<float> rounded = Values(0, 6);
  for (float& value : rounded) value = ToFloat(ToBF16(value));
  EXPECT_EQ(ToFloats(matrix).value(), rounded);
}

TEST_F(SavedModelTest, CopiesATokenizerThatFits) {
  const std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  model_.tokenizer = directory_.path();
  EXPECT_THAT(Message(Save()), HasSubstr("no tokenizer in " + directory_.path()));
  directory_.Write("vocab.txt", words + "b\n");
  EXPECT_THAT(Message(Save()), HasSubstr("has 7 tokens; the model's vocabulary has 6"));
  EXPECT_FALSE(std::filesystem::exists(path_));
  directory_.Write("vocab.txt", words);
  const absl::Status saved = Save();
  ASSERT_TRUE(saved.ok()) << saved;
  EXPECT_EQ(FileContent(path_ + "/vocab.txt"), words);
}

TEST_F(SavedModelTest, TakesThePlaceOfWhatWasThere) {
  ASSERT_TRUE(Save().ok());
  std::ofstream(path_ + "/old") << "old";
  ASSERT_TRUE(Save().ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/old"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

TEST_F(SavedModelTest, KeepsWhatAPersonWrote) {
  ASSERT_TRUE(Save().ok());
  model_.card += "more\n";
  ASSERT_TRUE(Save().ok());
  EXPECT_EQ(FileContent(path_ + "/README.md"), model_.card);
  std::ofstream(path_ + "/README.md") << "mine";
  ASSERT_TRUE(Save().ok());
  EXPECT_EQ(FileContent(path_ + "/README.md"), "mine");
}

TEST_F(SavedModelTest, AnErrorLeavesWhatWasThere) {
  ASSERT_TRUE(Save().ok());
  const absl::Status status =
      SaveModel(path_, model_, [](size_t) -> absl::StatusOr<std::span<const float>> {
        return Internal("the device is gone");
      });
  EXPECT_EQ(Message(status), "the device is gone");
  EXPECT_TRUE(SafetensorsFile::Open(path_ + "/model.safetensors").ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

}  // namespace
}  // namespace hippodrome::saved_model_test
