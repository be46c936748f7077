#include "server/load_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "server/handlers/handlers.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::load_model_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kDecoder = std::string(HIPPODROME_TESTDATA) + "/h3_golden";
const std::string kEncoder = std::string(HIPPODROME_TESTDATA) + "/bigs_golden/classifier";

LoadOptions OneThread() {
  LoadOptions options;
  options.device = DeviceChoice::kCpu;
  options.cpu.threads = 1;
  return options;
}

TEST(LoadModelTest, TheFamilyFollowsFromTheDirectory) {
  const auto decoder = LoadModel("d", kDecoder, OneThread());
  ASSERT_TRUE(decoder.ok()) << decoder.status();
  EXPECT_TRUE(std::holds_alternative<DecoderParts>(decoder->family));
  EXPECT_EQ(decoder->info.architecture(), "h3");
  const auto encoder = LoadModel("e", kEncoder, OneThread());
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  EXPECT_TRUE(std::holds_alternative<EncoderParts>(encoder->family));
}

TEST(LoadModelTest, SaysWhyTheCpuWasTakenUnlessItWasAskedFor) {
  EXPECT_EQ(LoadModel("e", kEncoder, OneThread())->device_obstacle, "");
  LoadOptions options = OneThread();
  options.device = DeviceChoice::kAuto;
  const auto parts = LoadModel("e", kEncoder, options);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(parts->device_obstacle.starts_with("cuda: "), parts->device == "cpu");
}

TEST(LoadModelTest, SaysWhereThereIsNoMemoryForStates) {
  LoadOptions options = OneThread();
  options.generator.key_value_bytes = int64_t{1} << 49;
  const absl::Status status = LoadModel("d", kDecoder, options).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("--kv-bytes"));
}

TEST(LoadModelTest, AnEncoderSaysWhatItIs) {
  const v1::Model info = LoadModel("e", kEncoder, OneThread())->info;
  EXPECT_EQ(info.name(), "e");
  EXPECT_EQ(info.architecture(), "bigs");
  EXPECT_EQ(info.head(), "sequence_classification");
  EXPECT_THAT(info.labels(), ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_EQ(info.vocab_size(), 211);
  EXPECT_EQ(info.embedding_size(), 48);
  EXPECT_EQ(info.max_positions(), 128);
  EXPECT_EQ(info.pad_to(), 128);
  EXPECT_TRUE(info.has_tokenizer());
  EXPECT_GT(info.parameters(), 0);
}

TEST(LoadModelTest, PaddingMayBeChosen) {
  LoadOptions options = OneThread();
  options.encoder.pad_to = 64;
  EXPECT_EQ(LoadModel("e", kEncoder, options)->info.max_positions(), 64);
  options.pad_to_max = true;
  EXPECT_EQ(LoadModel("e", kEncoder, options)->info.pad_to(), 128);
  options.pad_to_max = false;
  options.encoder.pad_to = 0;
  EXPECT_EQ(LoadModel("e", kEncoder, options)->info.pad_to(), 0);
  options.encoder.pad_to = 129;
  EXPECT_THAT(Message(LoadModel("e", kEncoder, options).status()), HasSubstr("129"));
}

// The labels' scores of `text`.
v1::ClassifyResponse Classify(Handlers& handlers, const std::vector<std::string>& texts) {
  v1::ClassifyRequest request;
  for (const std::string& text : texts) request.add_inputs()->set_text(text);
  auto answer = handlers.encoding().Classify(request, Api::kHttp);
  if (!answer.ok()) return {};
  std::optional<absl::StatusOr<v1::ClassifyResponse>> response;
  WaitUntil([&] { return (response = (*answer)->Take()).has_value(); });
  return response->value();
}

TEST(LoadModelTest, AnEncoderAnswersEachInputAsAlone) {
  Metrics metrics;
  std::vector<std::unique_ptr<ServedModel>> models;
  models.push_back(NewServedModel(LoadModel("e", kEncoder, OneThread()).value(), metrics));
  Handlers handlers(std::move(models), RequestLimits());
  const std::vector<std::string> texts = {"one", "a longer text, with more in it", "two three"};
  const v1::ClassifyResponse together = Classify(handlers, texts);
  ASSERT_EQ(together.results_size(), 3);
  for (int i = 0; i < 3; ++i) {
    const v1::ClassifyResponse alone = Classify(handlers, {texts[i]});
    EXPECT_EQ(alone.results(0).SerializeAsString(), together.results(i).SerializeAsString());
  }
}

}  // namespace
}  // namespace hippodrome::load_model_test
