#include "server/handlers/score_handler.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/handlers/handlers.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::score_handler_test {
namespace {

class ScoreHandlerTest : public testing::Test {
 protected:
  ScoreHandlerTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("m", {}, &engine_), metrics_));
    models.push_back(NewServedModel(NewFakeModel("ids", {}, nullptr, false), metrics_));
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits());
  }

  static v1::ScoreRequest Request(const std::string& context,
                                  const std::vector<std::string>& continuations) {
    v1::ScoreRequest request;
    request.set_text(context);
    for (const std::string& text : continuations) request.add_continuations()->set_text(text);
    return request;
  }

  absl::StatusOr<v1::ScoreResponse> Score(const v1::ScoreRequest& request) {
    auto pending = handlers_->Score(request, Api::kGrpc);
    if (!pending.ok()) return pending.status();
    std::optional<absl::StatusOr<v1::ScoreResponse>> response;
    EXPECT_TRUE(WaitUntil([&] { return (response = (*pending)->Take()).has_value(); }));
    return *std::move(response);
  }

  Metrics metrics_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<Handlers> handlers_;
};

TEST_F(ScoreHandlerTest, AContinuationHasTheSumOfItsTokens) {
  v1::ScoreRequest request = Request("abc", {"def", "dxf", "d"});
  request.set_per_token(true);
  const auto response = Score(request);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->scores_size(), 3);
  const auto sum = [](const std::string& text) {
    double sum = 0;
    for (size_t i = 1; i < text.size(); ++i) sum += FakeLogProbability(text[i - 1], text[i]);
    return sum;
  };
  EXPECT_EQ(response->scores(0).log_probability(), sum("cdef"));
  EXPECT_EQ(response->scores(1).log_probability(), sum("cdxf"));
  EXPECT_EQ(response->scores(2).log_probability(), sum("cd"));
  EXPECT_TRUE(response->scores(0).greedy());
  EXPECT_FALSE(response->scores(1).greedy());
  EXPECT_EQ(response->scores(1).tokens(), 3);
  EXPECT_EQ(response->scores(1).token_ids(1), 'x');
  EXPECT_EQ(response->scores(1).token_log_probabilities(2), FakeLogProbability('x', 'f'));
  EXPECT_EQ(response->usage().prompt_tokens(), 6 + 6 + 4);
  EXPECT_EQ(response->usage().completion_tokens(), 0);
  request.set_per_token(false);
  EXPECT_EQ(Score(request)->scores(0).token_ids_size(), 0);
}

TEST_F(ScoreHandlerTest, MoreContinuationsThanSlots) {
  std::vector<std::string> continuations(128, "b");
  const auto response = Score(Request("a", continuations));
  ASSERT_TRUE(response.ok()) << response.status();
  for (const auto& score : response->scores()) {
    EXPECT_EQ(score.log_probability(), FakeLogProbability('a', 'b'));
  }
}

TEST_F(ScoreHandlerTest, WhatIsMissingOrTooMuchIsNamed) {
  EXPECT_EQ(Field(Score(Request("a", {})).status()), "continuations");
  EXPECT_EQ(Field(Score(Request("a", std::vector<std::string>(129, "b"))).status()),
            "continuations");
  EXPECT_EQ(Field(Score(Request("a", {"b", ""})).status()), "continuations");
  EXPECT_EQ(Field(Score(Request("", {"b"})).status()), "context");
  v1::ScoreRequest ids;
  ids.mutable_token_ids()->add_ids(257);
  ids.add_continuations()->mutable_token_ids()->add_ids(1);
  EXPECT_EQ(Field(Score(ids).status()), "context");
  ids.mutable_token_ids()->set_ids(0, 256);
  EXPECT_TRUE(Score(ids).ok());
  ids.set_model("none");
  EXPECT_TRUE(absl::IsNotFound(Score(ids).status()));
  ids.set_model("ids");
  EXPECT_TRUE(Score(ids).ok());
  v1::ScoreRequest text = Request("a", {"b"});
  text.set_model("ids");
  EXPECT_TRUE(absl::IsFailedPrecondition(Score(text).status()));
  const std::string lengthy(300000, 'a');
  EXPECT_TRUE(absl::IsOutOfRange(Score(Request("a", {lengthy, lengthy})).status()));
}

TEST_F(ScoreHandlerTest, WhoGivesUpGivesEverythingBack) {
  engine_->hold_prefill = true;
  auto pending = handlers_->Score(Request("abc", std::vector<std::string>(20, "d")), Api::kGrpc);
  ASSERT_TRUE(pending.ok());
  EXPECT_TRUE(WaitUntil([&] { return engine_->used_slots == 4; }));
  pending->reset();
  EXPECT_TRUE(WaitUntil([&] { return engine_->used_slots == 0 && handlers_->pending() == 0; }));
}

}  // namespace
}  // namespace hippodrome::score_handler_test
