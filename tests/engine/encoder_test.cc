#include "engine/encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "engine/passes/encoder_forward.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"
#include "tests/testing/test_backend.h"

namespace hippodrome::encoder_test {
namespace {

EncoderRequest Request(int64_t tokens, uint32_t seed, std::vector<int32_t> rows = {}) {
  EncoderRequest request{.ids = RandomIds(tokens, 40, seed), .rows = std::move(rows)};
  for (int64_t t = 0; t < tokens; ++t) request.types.push_back(t > tokens / 2 ? 1 : 0);
  return request;
}

std::vector<const EncoderRequest*> Pointers(const std::vector<EncoderRequest>& requests) {
  std::vector<const EncoderRequest*> pointers;
  for (const EncoderRequest& request : requests) pointers.push_back(&request);
  return pointers;
}

std::unique_ptr<Encoder> MakeEncoder(Backend& backend, const Bigs& model,
                                     const EncoderOptions& options = {}) {
  return std::move(Encoder::Create(backend, model, options)).value();
}

void ExpectAnswersAsAlone(Backend& backend, DType weights) {
  const auto model = MakeTestBigs(backend, TinyBigsConfig(), weights);
  const auto encoder = MakeEncoder(backend, *model);
  std::vector<EncoderRequest> requests = {Request(3, 1, {1}), Request(17, 2, {16, 0}),
                                          Request(9, 3), Request(1, 4, {0}), Request(6, 5, {5, 2})};
  requests[2].task = EncoderTask::kEmbedding;
  requests[4].task = EncoderTask::kTokenEmbeddings;
  const auto together = encoder->Run(Pointers(requests));
  ASSERT_EQ(together.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto alone = encoder->Run(Pointers({requests[i]}));
    EXPECT_EQ(together[i].rows, alone[0].rows);
    EXPECT_EQ(together[i].cols, alone[0].cols);
    ASSERT_EQ(together[i].values.size(), alone[0].values.size());
    for (size_t j = 0; j < alone[0].values.size(); ++j) {
      if (backend.name() == "cpu") {
        EXPECT_EQ(together[i].values[j], alone[0].values[j]) << i << " " << j;
      } else {
        EXPECT_NEAR(together[i].values[j], alone[0].values[j], 1e-4) << i << " " << j;
      }
    }
  }
}

TEST(EncoderTest, ABatchAnswersAsSingleRequestsDo) {
  HIPPODROME_TEST_BACKEND(backend);
  ExpectAnswersAsAlone(*backend, DType::kF32);
}

TEST(EncoderTest, ABatchAnswersAsSingleRequestsDoInEveryTypeOfWeights) {
  const auto backend = MakeCpuBackend();
  for (const DType weights : kWeightTypes) ExpectAnswersAsAlone(*backend, weights);
}

TEST(EncoderTest, TheEmbeddingIsTheMeanOfThoseOfTheTokens) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto model = MakeTestBigs(*backend, TinyBigsConfig());
  const auto encoder = MakeEncoder(*backend, *model);
  EncoderRequest tokens = Request(5, 3, {0, 1, 2, 3, 4});
  tokens.task = EncoderTask::kTokenEmbeddings;
  EncoderRequest mean = Request(5, 3);
  mean.task = EncoderTask::kEmbedding;
  const auto outputs = encoder->Run(Pointers({Request(7, 1, {0}), tokens, mean}));
  const int64_t d = encoder->config().hidden_size;
  ASSERT_EQ(outputs[1].rows, 5);
  ASSERT_EQ(outputs[1].cols, d);
  for (int64_t j = 0; j < d; ++j) {
    double sum = 0;
    for (int64_t t = 0; t < 5; ++t) sum += outputs[1].values[t * d + j];
    EXPECT_NEAR(sum / 5, outputs[2].values[j], 1e-5) << j;
  }
}

TEST(EncoderTest, PadsToTheModelsLength) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto model = MakeTestBigs(*backend, TinyBigsConfig());
  const auto encoder = MakeEncoder(*backend, *model);
  EXPECT_EQ(encoder->max_tokens(), 64);
  EXPECT_EQ(encoder->PaddedLength(3), 64);
  const EncoderRequest request = Request(5, 7, {2, 4});
  const auto output = encoder->Run(Pointers({request}));
  EncoderInputs padded{.batch = 1, .length = 64, .ids = request.ids, .types = request.types};
  padded.mask.assign(5, 1);
  padded.ids.resize(64);
  padded.types.resize(64);
  padded.mask.resize(64);
  std::vector<float> logits;
  ASSERT_TRUE(EncoderForward(*backend, *model, padded, [&](std::span<const float> values) {
                logits.insert(logits.end(), values.begin(), values.end());
              }).ok());
  ASSERT_EQ(output[0].values.size(), 80u);
  for (int j = 0; j < 40; ++j) {
    EXPECT_NEAR(output[0].values[j], logits[2 * 40 + j], 1e-5);
    EXPECT_NEAR(output[0].values[40 + j], logits[4 * 40 + j], 1e-5);
  }
}

TEST(EncoderTest, WithoutPaddingAnswersDiffer) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto model = MakeTestBigs(*backend, TinyBigsConfig());
  const EncoderRequest request = Request(5, 7, {2});
  const auto padding = MakeEncoder(*backend, *model);
  const auto bare = MakeEncoder(*backend, *model, {.pad_to = 0});
  EXPECT_EQ(bare->PaddedLength(5), 5);
  EXPECT_EQ(bare->max_tokens(), 300);
  const auto padded = padding->Run(Pointers({request}));
  const auto unpadded = bare->Run(Pointers({request}));
  double difference = 0;
  for (int j = 0; j < 40; ++j) {
    difference += std::abs(padded[0].values[j] - unpadded[0].values[j]);
  }
  EXPECT_GT(difference, 1e-2);
}

TEST(EncoderTest, ChecksRequests) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto model = MakeTestBigs(*backend, TinyBigsConfig());
  const auto encoder = MakeEncoder(*backend, *model);
  EXPECT_TRUE(encoder->Validate(Request(64, 1, {63})).ok());
  EXPECT_TRUE(absl::IsOutOfRange(encoder->Validate(Request(65, 1, {0}))));
  EXPECT_TRUE(absl::IsInvalidArgument(encoder->Validate(Request(0, 1, {}))));
  EXPECT_TRUE(absl::IsInvalidArgument(encoder->Validate(Request(4, 1, {4}))));
  EXPECT_TRUE(absl::IsInvalidArgument(encoder->Validate(Request(4, 1))));
  EncoderRequest request = Request(4, 1, {0});
  request.task = EncoderTask::kEmbedding;
  EXPECT_TRUE(absl::IsInvalidArgument(encoder->Validate(request)));
  request.task = EncoderTask::kTokenEmbeddings;
  EXPECT_TRUE(encoder->Validate(request).ok());
  request.rows.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(encoder->Validate(request)));
  request.task = EncoderTask::kEmbedding;
  EXPECT_TRUE(encoder->Validate(request).ok());
  request.ids[2] = 40;
  EXPECT_TRUE(absl::IsInvalidArgument(encoder->Validate(request)));
}

TEST(EncoderTest, ChecksOptions) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto model = MakeTestBigs(*backend, TinyBigsConfig());
  EXPECT_TRUE(absl::IsInvalidArgument(Encoder::Create(*backend, *model, {.pad_to = 301}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Encoder::Create(*backend, *model, {.pad_to = -1}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Encoder::Create(*backend, *model, {.max_batch_tokens = 0}).status()));
}

TEST(EncoderTest, AModelWithoutHeadGivesEmbeddings) {
  HIPPODROME_TEST_BACKEND(backend);
  BigsConfig config = TinyBigsConfig();
  config.head = EncoderHead::kNone;
  const auto model = MakeTestBigs(*backend, config);
  const auto encoder = MakeEncoder(*backend, *model);
  EncoderRequest request = Request(4, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(encoder->Validate(request)));
  request.task = EncoderTask::kEmbedding;
  ASSERT_TRUE(encoder->Validate(request).ok());
  EXPECT_EQ(encoder->Run(Pointers({request}))[0].cols, 32);
}

}  // namespace
}  // namespace hippodrome::encoder_test
