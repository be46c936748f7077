#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/tasks/fill_mask.h"
#include "tests/server/handlers/encoding_handlers_fixture.h"

namespace hippodrome::fill_mask_handler_test {
namespace {

using testing::HasSubstr;
using FillMaskHandlerTest = EncodingHandlersTest;

v1::FillMaskRequest Fill(const std::string& text) {
  v1::FillMaskRequest request;
  request.set_model("words");
  request.add_inputs()->set_text(text);
  return request;
}

TEST_F(FillMaskHandlerTest, MasksAreFilledInOrder) {
  const std::string text = "the [MASK] of [MASK]!";
  const auto response = FillMask(Fill(text));
  ASSERT_TRUE(response.ok()) << response.status();
  EncoderRequest laid_out = LaidOut(text);
  laid_out.rows = {2, 4};
  const std::vector<float> logits = Output("words", laid_out);
  ASSERT_EQ(response->results_size(), 1);
  ASSERT_EQ(response->results(0).masks_size(), 2);
  for (int m = 0; m < 2; ++m) {
    const auto expected = LikeliestTokens(std::span(logits).subspan(100 * m, 100), 5);
    const auto& candidates = response->results(0).masks(m).candidates();
    ASSERT_EQ(candidates.size(), 5);
    for (int k = 0; k < 5; ++k) {
      EXPECT_EQ(candidates[k].token_id(), expected[k].id);
      EXPECT_EQ(candidates[k].score(), expected[k].score);
      EXPECT_EQ(candidates[k].token(), tokenizer_->Token(expected[k].id));
    }
  }
}

TEST_F(FillMaskHandlerTest, TargetsNarrowTheChoice) {
  v1::FillMaskRequest request = Fill("[MASK] is the capital of [MASK].");
  for (const char* target : {"Paris", "lyon", "Paris"}) request.add_targets(target);
  const auto response = FillMask(request);
  ASSERT_TRUE(response.ok()) << response.status();
  const auto& candidates = response->results(0).masks(0).candidates();
  ASSERT_EQ(candidates.size(), 2);
  for (const auto& candidate : candidates) {
    EXPECT_EQ(candidate.sequence(), candidate.token() + " is the capital of [MASK].");
  }
  request.add_targets("lyonnais");
  const absl::Status status = FillMask(request).status();
  EXPECT_EQ(Field(status), "targets");
  EXPECT_THAT(Message(status), HasSubstr("lyonnais"));
}

TEST_F(FillMaskHandlerTest, MistakesInFillMaskAreNamed) {
  v1::FillMaskRequest request = Fill("[MASK]");
  request.add_inputs()->set_text("paris");
  EXPECT_EQ(Field(FillMask(request).status()), "inputs[1]");
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    request = Fill("[MASK]");
    request.set_top_k(bad);
    EXPECT_EQ(Field(FillMask(request).status()), "top_k") << bad;
  }
  request.set_top_k(4096);
  EXPECT_TRUE(FillMask(request).ok());
  request.mutable_inputs(0)->set_text("[MASK] [MASK]");
  EXPECT_EQ(Field(FillMask(request).status()), "top_k");
  request.clear_inputs();
  request.set_top_k(1);
  for (int i = 0; i < 513; ++i) request.add_inputs()->set_text("[MASK]");
  EXPECT_EQ(Field(FillMask(request).status()), "inputs");
}

}  // namespace
}  // namespace hippodrome::fill_mask_handler_test
