#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/tasks/label_scores.h"
#include "tests/server/handlers/encoding_handlers_fixture.h"

namespace hippodrome::tag_tokens_handler_test {
namespace {

using TagTokensHandlerTest = EncodingHandlersTest;

v1::TagTokensRequest Tag(const std::string& text, v1::Aggregation aggregation) {
  v1::TagTokensRequest request;
  request.set_model("tags");
  request.add_inputs()->set_text(text);
  request.set_aggregation(aggregation);
  return request;
}

TEST_F(TagTokensHandlerTest, SingleTokensAreTagged) {
  const std::string text = "Paris, ab";
  const auto response = TagTokens(Tag(text, v1::AGGREGATION_NONE));
  ASSERT_TRUE(response.ok()) << response.status();
  EncoderRequest laid_out = LaidOut(text);
  for (int32_t i = 0; i < std::ssize(laid_out.ids); ++i) laid_out.rows.push_back(i);
  const std::vector<float> logits = Output("tags", laid_out);
  for (const auto& entity : response->results(0).entities()) {
    EXPECT_EQ(entity.word(), tokenizer_->Token(laid_out.ids[entity.index()]));
    const std::vector<float> scores = Softmax(std::span(logits).subspan(4 * entity.index(), 4));
    EXPECT_EQ(entity.score(), *std::max_element(scores.begin(), scores.end()));
    EXPECT_NE(entity.label(), "O");
  }
}

TEST_F(TagTokensHandlerTest, EntitiesArePartsOfTheText) {
  const std::string text = "Lyon is the capital? \u00c9 Paris, of france!";
  const std::string plain = "Lyon is the capital? E Paris, of france!";
  int entities = 0;
  for (const auto aggregation :
       {v1::AGGREGATION_UNSPECIFIED, v1::AGGREGATION_SIMPLE, v1::AGGREGATION_FIRST,
        v1::AGGREGATION_AVERAGE, v1::AGGREGATION_MAX}) {
    const auto response = TagTokens(Tag(text, aggregation));
    ASSERT_TRUE(response.ok()) << response.status();
    for (const auto& entity : response->results(0).entities()) {
      ++entities;
      std::string word = entity.word();
      const size_t accent = word.find("\u00c9");
      if (accent != std::string::npos) word.replace(accent, 2, "E");
      EXPECT_EQ(word, plain.substr(entity.start(), entity.end() - entity.start()));
    }
  }
  EXPECT_GT(entities, 0);
}

TEST_F(TagTokensHandlerTest, TokensAreTaggedOneByOneAlone) {
  v1::TagTokensRequest request;
  request.set_model("tags");
  for (const int32_t id : {2, 63, 64, 3}) {
    if (request.inputs_size() == 0) request.add_inputs();
    request.mutable_inputs(0)->mutable_tokens()->add_ids(id);
  }
  EXPECT_EQ(Field(TagTokens(request).status()), "inputs[0]");
  request.set_aggregation(v1::AGGREGATION_NONE);
  const auto response = TagTokens(request);
  ASSERT_TRUE(response.ok()) << response.status();
  for (const auto& entity : response->results(0).entities()) {
    EXPECT_TRUE(entity.index() == 1 || entity.index() == 2);
  }
  request.mutable_inputs(0)->mutable_pair()->set_first("a");
  EXPECT_EQ(Field(TagTokens(request).status()), "inputs[0]");
  request.set_aggregation(static_cast<v1::Aggregation>(17));
  EXPECT_EQ(Field(TagTokens(request).status()), "aggregation");
}

}  // namespace
}  // namespace hippodrome::tag_tokens_handler_test
