#include "engine/generator.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/models/h3/hybrid_h3.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::generator_test {
namespace {

constexpr auto kForever = Generator::Clock::time_point::max();
constexpr auto kAtOnce = Generator::Clock::time_point::min();

GenerationRequest Request(int64_t prompt_tokens, int64_t max_tokens, uint32_t seed,
                          float temperature = 0) {
  return {.prompt = RandomIds(prompt_tokens, 40, seed),
          .max_tokens = max_tokens,
          .sampling = {.temperature = temperature, .seed = seed}};
}

class GeneratorTest : public testing::Test {
 protected:
  GeneratorTest() : backend_(MakeCpuBackend({.threads = 2})) { UseModel(TinyConfig()); }

  void UseModel(const H3Config& config) { model_ = MakeTestModel(*backend_, config); }

  std::unique_ptr<Generator> NewGenerator(int64_t max_sequences = 8,
                                          int64_t key_value_bytes = 1 << 22) {
    auto generator = Generator::Create(*backend_, *model_, {max_sequences, key_value_bytes});
    EXPECT_TRUE(generator.ok()) << generator.status();
    return *std::move(generator);
  }

  // The tokens of `request` on its own.
  std::vector<int32_t> Alone(const GenerationRequest& request) {
    const auto generator = NewGenerator(1);
    const SequenceId id = generator->Admit(request).value();
    std::vector<TokenEvent> events;
    generator->Prefill(kForever, events);
    while (events.back().finish == FinishReason::kNone) generator->Step(events);
    generator->Release(id);
    std::vector<int32_t> tokens;
    for (const TokenEvent& event : events) tokens.push_back(event.token);
    return tokens;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HybridH3> model_;
};

TEST_F(GeneratorTest, SequencesDoNotDependOnTheirNeighbours) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 12; ++i) {
    requests.push_back(Request(1 + i * 67 % 700, 5 + i, i, i % 2 == 0 ? 0.0f : 1.3f));
  }
  const auto generator = NewGenerator(5);
  std::map<SequenceId, size_t> running;
  std::vector<std::vector<int32_t>> tokens(requests.size());
  size_t next = 0, finished = 0;
  // Requests join whenever a slot is free; prefill is interrupted after every layer.
  while (finished < requests.size()) {
    if (next < requests.size()) {
      if (auto id = generator->Admit(requests[next]); id.ok()) running[*id] = next++;
    }
    std::vector<TokenEvent> events;
    generator->Prefill(kAtOnce, events);
    generator->Step(events);
    for (const TokenEvent& event : events) {
      tokens[running.at(event.sequence)].push_back(event.token);
      if (event.finish == FinishReason::kNone) continue;
      generator->Release(event.sequence);
      ++finished;
    }
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(tokens[i], Alone(requests[i])) << "request " << i;
    EXPECT_EQ(tokens[i].size(), static_cast<size_t>(requests[i].max_tokens));
  }
  EXPECT_EQ(generator->used().bytes, 0);
}

TEST_F(GeneratorTest, FewTokensOfPromptsAreTakenInWhereOthersStep) {
  std::vector<GenerationRequest> requests = {Request(100, 12, 1), Request(20, 9, 2, 1.1f),
                                             Request(30, 7, 3), Request(200, 5, 4)};
  requests[2].score_prompt = true;
  const auto generator = NewGenerator(4);
  std::map<SequenceId, std::vector<int32_t>> tokens;
  std::vector<TokenEvent> events;
  const auto take = [&] {
    for (const TokenEvent& event : events) tokens[event.sequence].push_back(event.token);
    return std::exchange(events, {}).size();
  };
  std::vector<SequenceId> ids = {generator->Admit(requests[0]).value()};
  generator->Prefill(kForever, events);
  EXPECT_EQ(generator->stepped(), 0);  // nobody decoded
  EXPECT_EQ(take(), 1);
  ids.push_back(generator->Admit(requests[1]).value());
  ids.push_back(generator->Admit(requests[2]).value());
  generator->Prefill(kAtOnce, events);  // both prompts, and a step
  EXPECT_EQ(generator->stepped(), 1);
  EXPECT_FALSE(generator->prefilling());
  EXPECT_EQ(events[0].prompt_scores.size() + events[1].prompt_scores.size(), 30);
  EXPECT_EQ(take(), 3);
  ids.push_back(generator->Admit(requests[3]).value());
  generator->Prefill(kAtOnce, events);  // many tokens: a layer, and nobody waits for more
  EXPECT_EQ(generator->stepped(), 0);
  EXPECT_EQ(take(), 0);
  generator->Prefill(kForever, events);
  while (generator->decoding() > 0) generator->Step(events);
  take();
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(tokens[ids[i]], Alone(requests[i])) << i;
}

TEST_F(GeneratorTest, ReservesExactlyAndGivesBackInEveryPhase) {
  const auto generator = NewGenerator(4);
  const Footprint cost = generator->Cost(100, 30);
  EXPECT_EQ(cost.slots, 1);
  EXPECT_EQ(cost.pages, 3);  // 129 rows in pages of 64
  EXPECT_EQ(generator->Cost(100, 29).pages, 2);
  const auto request = Request(600, 30, 1);
  std::vector<TokenEvent> events;

  const SequenceId queued = generator->Admit(request).value();
  EXPECT_EQ(generator->used().bytes, generator->Cost(600, 30).bytes);
  generator->Release(queued);
  EXPECT_EQ(generator->used().bytes, 0);

  const SequenceId prefilling = generator->Admit(request).value();
  generator->Prefill(kAtOnce, events);
  EXPECT_TRUE(events.empty());
  generator->Release(prefilling);
  EXPECT_FALSE(generator->prefilling());
  EXPECT_EQ(generator->used().bytes, 0);

  const SequenceId decoding = generator->Admit(request).value();
  generator->Prefill(kForever, events);
  generator->Step(events);
  EXPECT_EQ(generator->decoding(), 1);
  generator->Release(decoding);
  generator->Release(decoding);  // unknown by now
  EXPECT_EQ(generator->decoding(), 0);
  EXPECT_EQ(generator->used().bytes, 0);
  EXPECT_EQ(generator->used().slots, 0);
}

TEST_F(GeneratorTest, KnowsHowManyTokensAreLeft) {
  const auto generator = NewGenerator(2);
  const GenerationRequest request = Request(700, 5, 1);
  const SequenceId id = generator->Admit(request).value();
  int64_t last = generator->Remaining(id);
  EXPECT_EQ(last, 705);
  std::vector<TokenEvent> events;
  while (events.empty()) {
    generator->Prefill(kAtOnce, events);
    EXPECT_LE(generator->Remaining(id), last);
    last = generator->Remaining(id);
  }
  for (int64_t left = 4; left >= 0; --left) {
    EXPECT_EQ(generator->Remaining(id), left);
    generator->Step(events);
  }
}

TEST_F(GeneratorTest, AReusedSlotKeepsNothingOfItsFormerSequence) {
  const auto first = Request(90, 20, 3);
  const auto second = Request(5, 20, 4);
  const auto expected = Alone(second);
  const auto generator = NewGenerator(1);
  std::vector<TokenEvent> events;
  const SequenceId a = generator->Admit(first).value();
  generator->Prefill(kForever, events);
  for (int i = 0; i < 7; ++i) generator->Step(events);
  generator->Release(a);
  events.clear();
  generator->Admit(second).value();
  generator->Prefill(kForever, events);
  while (events.back().finish == FinishReason::kNone) generator->Step(events);
  std::vector<int32_t> tokens;
  for (const TokenEvent& event : events) tokens.push_back(event.token);
  EXPECT_EQ(tokens, expected);
}

TEST_F(GeneratorTest, TellsFullFromImpossible) {
  const auto generator = NewGenerator(2);
  const int64_t rows = generator->capacity().pages * 64;
  EXPECT_TRUE(absl::IsOutOfRange(generator->Validate(Request(rows, 2, 1))));
  EXPECT_TRUE(absl::IsOutOfRange(generator->Validate(Request(1, INT64_MAX, 1))));
  ASSERT_TRUE(generator->Admit(Request(rows / 2, 2, 1)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(generator->Admit(Request(rows / 2 + 64, 2, 1)).status()));
  ASSERT_TRUE(generator->Admit(Request(1, 2, 1)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(generator->Admit(Request(1, 1, 1)).status()));
}

TEST_F(GeneratorTest, RefusesBadRequests) {
  const auto generator = NewGenerator();
  const auto refused = [&](const GenerationRequest& request) {
    return absl::IsInvalidArgument(generator->Validate(request));
  };
  EXPECT_TRUE(refused({.prompt = {}}));
  EXPECT_TRUE(refused({.prompt = {40}}));  // a padded id
  EXPECT_TRUE(refused({.prompt = {-1}}));
  EXPECT_EQ(Field(generator->Validate({.prompt = {1, 40}})), "prompt");
  EXPECT_TRUE(refused({.prompt = {1}, .max_tokens = 0}));
  EXPECT_TRUE(generator->Validate({.prompt = {0, 39}, .max_tokens = 1}).ok());
}

TEST_F(GeneratorTest, StopsAtTheEndOfTextUnlessAskedNotTo) {
  const auto request = Request(9, 30, 6);
  const auto tokens = Alone(request);
  H3Config config = TinyConfig();
  config.eos_token_id = tokens[3];
  UseModel(config);
  size_t first = 0;
  while (tokens[first] != tokens[3]) ++first;
  const auto stopped = Alone(request);
  EXPECT_EQ(stopped, std::vector(tokens.begin(), tokens.begin() + static_cast<int64_t>(first) + 1));
  auto ignoring = request;
  ignoring.ignore_eos = true;
  EXPECT_EQ(Alone(ignoring), tokens);
}

TEST_F(GeneratorTest, KeepsWithinThePositionTable) {
  H3Config config = TinyConfig();
  config.max_position_embeddings = 20;
  UseModel(config);
  const auto generator = NewGenerator();
  EXPECT_TRUE(absl::IsOutOfRange(generator->Validate(Request(15, 7, 1))));
  EXPECT_EQ(Alone(Request(15, 6, 1)).size(), 6u);
}

TEST_F(GeneratorTest, NeedsRoomForOneSequence) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(Generator::Create(*backend_, *model_, {0, 1 << 20}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Generator::Create(*backend_, *model_, {1, 1}).status()));
}

TEST_F(GeneratorTest, AModelWithoutAttentionCostsTheSameAtAnyLength) {
  H3Config config = TinyConfig();
  config.attention_layers = {};
  config.attention_heads = 0;
  UseModel(config);
  const auto generator = NewGenerator();
  EXPECT_EQ(generator->Cost(1, 1).bytes, generator->Cost(1 << 30, int64_t{1} << 40).bytes);
  EXPECT_TRUE(generator->Admit(Request(10, int64_t{1} << 40, 1)).ok());
}

}  // namespace
}  // namespace hippodrome::generator_test
