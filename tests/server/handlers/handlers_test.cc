#include "server/handlers/handlers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/status_map.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::handlers_test {
namespace {

class HandlersTest : public testing::Test {
 protected:
  HandlersTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("text", {}, &engine_), metrics_));
    models.push_back(NewServedModel(NewFakeModel("ids", {}, nullptr, false), metrics_));
    models.push_back(NewServedModel(NewFakeEncoderModel("encoder"), metrics_));
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits());
  }

  static v1::GenerateRequest Text(const std::string& text) {
    v1::GenerateRequest request;
    request.set_text(text);
    return request;
  }

  absl::Status Try(const v1::GenerateRequest& request) {
    return handlers_->Generate(request, Api::kHttp).status();
  }

  Metrics metrics_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<Handlers> handlers_;
};

TEST_F(HandlersTest, DefaultsOfGenerate) {
  auto generation = handlers_->Generate(Text("ab"), Api::kHttp);
  ASSERT_TRUE(generation.ok()) << generation.status();
  std::string text;
  ASSERT_TRUE(WaitUntil([&] {
    const auto update = (*generation)->Take();
    if (update) text += update->text;
    return update && update->last();
  }));
  EXPECT_EQ(text, "abababababababab");
}

TEST_F(HandlersTest, NumbersOutOfRangeAreNamed) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, inf, -inf, -1.0f, -1e-45f, 101.0f, 1e38f}) {
    v1::GenerateRequest request = Text("x");
    request.set_temperature(bad);
    EXPECT_EQ(Field(Try(request)), "temperature") << bad;
  }
  for (const float bad : {nan, inf, -inf, -1.0f, 0.0f, 1.5f}) {
    v1::GenerateRequest request = Text("x");
    request.set_top_p(bad);
    EXPECT_EQ(Field(Try(request)), "top_p") << bad;
  }
  for (const float bad : {nan, inf, -1.0f, 1.5f}) {
    v1::GenerateRequest request = Text("x");
    request.set_min_p(bad);
    EXPECT_EQ(Field(Try(request)), "min_p") << bad;
  }
  for (const int64_t bad :
       {int64_t{-1}, (int64_t{1} << 30) + 1, std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max()}) {
    v1::GenerateRequest request = Text("x");
    request.set_top_k(bad);
    EXPECT_EQ(Field(Try(request)), "top_k") << bad;
  }
  for (const int64_t bad :
       {int64_t{-1}, (int64_t{1} << 20) + 1, std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max()}) {
    v1::GenerateRequest request = Text("x");
    request.set_max_tokens(bad);
    EXPECT_EQ(Field(Try(request)), "max_tokens") << bad;
  }
}

TEST_F(HandlersTest, NumbersAtTheEndsOfTheirRangesAreTaken) {
  v1::GenerateRequest request = Text("x");
  request.set_temperature(0);
  request.set_top_p(1);
  request.set_top_k(int64_t{1} << 30);
  request.set_min_p(1);
  request.set_seed(std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(Try(request).ok());
  request.set_temperature(1e-45f);
  request.set_top_k(0);
  request.set_min_p(0);
  EXPECT_TRUE(Try(request).ok());
  request.set_temperature(100);
  EXPECT_TRUE(Try(request).ok());
}

TEST_F(HandlersTest, StopStringsAreBounded) {
  v1::GenerateRequest request = Text("x");
  for (int i = 0; i < 16; ++i) request.add_stop(std::string(256, 'a'));
  EXPECT_TRUE(Try(request).ok());
  request.add_stop("b");
  EXPECT_EQ(Field(Try(request)), "stop");
  for (const std::string& bad : {std::string(), std::string(257, 'a')}) {
    v1::GenerateRequest other = Text("x");
    other.add_stop(bad);
    EXPECT_EQ(Field(Try(other)), "stop");
  }
}

TEST_F(HandlersTest, PromptsAreChecked) {
  EXPECT_EQ(Field(Try(v1::GenerateRequest())), "prompt");
  EXPECT_EQ(Field(Try(Text(""))), "prompt");
  v1::GenerateRequest request;
  request.mutable_token_ids();
  EXPECT_EQ(Field(Try(request)), "prompt");
  for (const int32_t bad : {-1, 257, std::numeric_limits<int32_t>::max()}) {
    request.mutable_token_ids()->clear_ids();
    request.mutable_token_ids()->add_ids(bad);
    EXPECT_EQ(Field(Try(request)), "prompt") << bad;
  }
  request.mutable_token_ids()->set_ids(0, 256);
  EXPECT_TRUE(Try(request).ok());
}

TEST_F(HandlersTest, WhatNeverFitsIsRefusedWithTheNumbers) {
  v1::GenerateRequest request = Text("x");
  request.set_max_tokens(100000);
  EXPECT_EQ(Try(request).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(HttpStatus(Try(request)), 400);
}

TEST_F(HandlersTest, ModelsAreFoundByName) {
  EXPECT_EQ(handlers_->GetModel("")->name(), "text");
  EXPECT_EQ(handlers_->GetModel("ids")->name(), "ids");
  EXPECT_TRUE(absl::IsNotFound(handlers_->GetModel("no").status()));
  EXPECT_EQ(handlers_->ListModels().models_size(), 3);
  EXPECT_EQ(handlers_->ModelName(""), "text");
  EXPECT_EQ(handlers_->ModelName("no"), "");
  v1::GenerateRequest request = Text("x");
  request.set_model("no");
  EXPECT_TRUE(absl::IsNotFound(Try(request)));
}

TEST_F(HandlersTest, AModelWithoutTokenizerTakesTokenIdsAlone) {
  v1::GenerateRequest request = Text("x");
  request.set_model("ids");
  EXPECT_TRUE(absl::IsFailedPrecondition(Try(request)));
  request.mutable_token_ids()->add_ids(5);
  EXPECT_TRUE(Try(request).ok());
  request.add_stop("x");
  EXPECT_TRUE(absl::IsFailedPrecondition(Try(request)));
  v1::TokenizeRequest tokenize;
  tokenize.set_model("ids");
  EXPECT_TRUE(absl::IsFailedPrecondition(handlers_->Tokenize(tokenize).status()));
}

TEST_F(HandlersTest, AnEncoderGeneratesNothing) {
  v1::GenerateRequest request = Text("x");
  request.set_model("encoder");
  EXPECT_TRUE(absl::IsFailedPrecondition(Try(request)));
  EXPECT_EQ(handlers_->ModelName("encoder"), "");
  EXPECT_EQ(handlers_->GetModel("encoder")->head(), "sequence_classification");
}

TEST_F(HandlersTest, AnEncoderTokenizesWithItsLayout) {
  v1::TokenizeRequest tokenize;
  tokenize.set_model("encoder");
  tokenize.set_text("The capital!");
  const auto tokens = handlers_->Tokenize(tokenize);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  v1::DetokenizeRequest detokenize;
  detokenize.set_model("encoder");
  *detokenize.mutable_token_ids() = tokens->token_ids();
  EXPECT_EQ(handlers_->Detokenize(detokenize)->text(), "[CLS] the capital! [SEP]");
  detokenize.add_token_ids(100);
  EXPECT_EQ(Field(handlers_->Detokenize(detokenize).status()), "tokens");
}

TEST_F(HandlersTest, TokenizeAndDetokenize) {
  v1::TokenizeRequest tokenize;
  tokenize.set_text("a\u00e9");
  const auto tokens = handlers_->Tokenize(tokenize);
  ASSERT_EQ(tokens->token_ids_size(), 3);
  v1::DetokenizeRequest detokenize;
  *detokenize.mutable_token_ids() = tokens->token_ids();
  EXPECT_EQ(handlers_->Detokenize(detokenize)->text(), "a\u00e9");
  detokenize.add_token_ids(0xC3);
  EXPECT_EQ(handlers_->Detokenize(detokenize)->text(), "a\u00e9\uFFFD");
  detokenize.add_token_ids(257);
  EXPECT_EQ(Field(handlers_->Detokenize(detokenize).status()), "tokens");
}

TEST_F(HandlersTest, ClosedHandlersAreNotReadyAndTakeNothing) {
  EXPECT_TRUE(handlers_->Ready().ok());
  engine_->hold_decode = true;
  auto running = handlers_->Generate(Text("x"), Api::kHttp);
  handlers_->Close();
  EXPECT_TRUE(absl::IsUnavailable(handlers_->Ready()));
  EXPECT_TRUE(absl::IsUnavailable(Try(Text("x"))));
  EXPECT_EQ(handlers_->pending(), 1);
  handlers_->Abort();
  EXPECT_TRUE(WaitUntil([&] { return handlers_->pending() == 0; }));
}

}  // namespace
}  // namespace hippodrome::handlers_test
