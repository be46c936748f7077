// Drafts decide about time alone: tokens, scores and states are those without them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/config.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/state/state_file.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::generator_speculation_test {
namespace {

constexpr auto kForever = Generator::Clock::time_point::max();
constexpr auto kAtOnce = Generator::Clock::time_point::min();

// A text that repeats itself, so that drafts are made; they come true more often the colder it is.
GenerationRequest Request(uint32_t seed, float temperature, int64_t max_tokens = 40) {
  std::vector<int32_t> prompt;
  const std::vector<int32_t> piece = RandomIds(11 + seed % 7, 40, seed);
  for (int i = 0; i < 4; ++i) prompt.insert(prompt.end(), piece.begin(), piece.end());
  return {.prompt = prompt,
          .max_tokens = max_tokens,
          .sampling = {.temperature = temperature, .seed = seed},
          .ignore_eos = true};
}

struct Answer {
  std::vector<int32_t> tokens;
  std::vector<float> scores;
  FinishReason finish = FinishReason::kNone;
  bool operator==(const Answer&) const = default;
};

void Take(std::vector<TokenEvent>& events, std::map<SequenceId, Answer>& answers) {
  for (const TokenEvent& event : events) {
    Answer& answer = answers[event.sequence];
    EXPECT_EQ(answer.finish, FinishReason::kNone);
    answer.tokens.push_back(event.token);
    answer.finish = event.finish;
    if (!event.scores) continue;
    answer.scores.push_back(event.scores->log_probability);
    for (const LikelyToken& likely : event.scores->likeliest) {
      answer.scores.push_back(likely.log_probability);
    }
  }
  events.clear();
}

// All of them at once.
std::vector<Answer> RunAll(Generator& generator, const std::vector<GenerationRequest>& requests) {
  std::vector<SequenceId> ids;
  for (const GenerationRequest& request : requests) {
    ids.push_back(generator.Admit(request).value());
  }
  std::map<SequenceId, Answer> answers;
  std::vector<TokenEvent> events;
  generator.Prefill(kForever, events);
  while (generator.decoding() > 0) {
    generator.Step(events);
    Take(events, answers);
  }
  Take(events, answers);
  std::vector<Answer> in_order;
  for (const SequenceId id : ids) {
    in_order.push_back(std::move(answers.at(id)));
    generator.Release(id);
  }
  EXPECT_EQ(generator.used().bytes, 0);
  EXPECT_EQ(generator.ready(), 0);
  return in_order;
}

class GeneratorSpeculationTest : public testing::TestWithParam<DType> {
 protected:
  GeneratorSpeculationTest() : backend_(MakeCpuBackend({.threads = 2})) { UseModel(TinyConfig()); }

  void UseModel(const H3Config& config) { model_ = MakeTestModel(*backend_, config, GetParam()); }
  // With so many layers.
  std::unique_ptr<HybridH3> ModelOf(int64_t layers) const {
    H3Config config = TinyConfig();
    config.n_layer = layers;
    if (layers == 1) config.attention_layers.clear();
    return MakeTestModel(*backend_, config, GetParam());
  }

  std::unique_ptr<Generator> NewGenerator(bool speculate, GeneratorOptions options = {}) const {
    options.max_sequences = 24;
    options.key_value_bytes = 1 << 22;
    options.speculate = speculate;
    if (!speculate) options.draft = nullptr;
    auto generator = Generator::Create(*backend_, *model_, options);
    EXPECT_TRUE(generator.ok()) << generator.status();
    return *std::move(generator);
  }

  // The same with drafts and without, each alone and all together; returns what was drafted.
  DraftCounts ExpectSame(const std::vector<GenerationRequest>& requests,
                         const GeneratorOptions& options = {}) const {
    const auto plain = NewGenerator(false, options);
    const auto drafting = NewGenerator(true, options);
    const std::vector<Answer> expected = RunAll(*plain, requests);
    EXPECT_EQ(RunAll(*drafting, requests), expected) << "together";
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(RunAll(*drafting, {requests[i]}).front(), expected[i]) << "request " << i;
    }
    EXPECT_EQ(plain->drafts().drafted, 0);
    return drafting->drafts();
  }

  static void ExpectSomeCameTrue(const DraftCounts& drafts) {
    EXPECT_GT(drafts.accepted, 0);
    EXPECT_LT(drafts.accepted, drafts.drafted);
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HybridH3> model_;
};

INSTANTIATE_TEST_SUITE_P(Weights, GeneratorSpeculationTest,
                         testing::Values(DType::kF32, DType::kBF16, DType::kI8, DType::kI4));

TEST_P(GeneratorSpeculationTest, GreedyAndSampledTokensAreTheSame) {
  std::vector<GenerationRequest> requests;
  const float temperatures[] = {0, 0.2f, 0.5f, 1.2f};
  for (uint32_t i = 0; i < 8; ++i) requests.push_back(Request(i, temperatures[i % 4], 20 + 5 * i));
  ExpectSomeCameTrue(ExpectSame(requests));
}

TEST_P(GeneratorSpeculationTest, ScoresAndPenaltiesAreTheSame) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 4; ++i) {
    requests.push_back(Request(i, 0.3f * static_cast<float>(i % 2)));
    requests.back().likeliest = static_cast<int32_t>(i);
    requests.back().changes.presence_penalty = i < 2 ? 0.0f : 0.05f;
    requests.back().changes.frequency_penalty = i < 2 ? 0.02f : 0.0f;
    requests.back().changes.repetition_penalty = 1.01f;
  }
  ExpectSomeCameTrue(ExpectSame(requests));
}

TEST_P(GeneratorSpeculationTest, AnAnswerEndsWhereItWouldWithoutDrafts) {
  std::vector<GenerationRequest> requests;
  for (int64_t tokens = 1; tokens <= 8; ++tokens) requests.push_back(Request(5, 0, tokens));
  ExpectSame(requests);
  const std::vector<int32_t> tokens =
      RunAll(*NewGenerator(false), {Request(5, 0)}).front().tokens;  // it repeats itself
  H3Config config = TinyConfig();
  config.eos_token_id = tokens[tokens.size() / 2];
  UseModel(config);
  for (GenerationRequest& request : requests) {
    request.max_tokens = 40;
    request.ignore_eos = false;
  }
  ExpectSame(requests);
}

TEST_P(GeneratorSpeculationTest, StatesAreTheSameBehindEveryToken) {
  for (const float temperature : {0.0f, 0.3f}) {
    GenerationRequest request = Request(9, temperature, 60);
    request.checkpoint_interval = 8;
    const auto plain = NewGenerator(false);
    const auto drafting = NewGenerator(true);
    const SequenceId a = plain->Admit(request).value();
    const SequenceId b = drafting->Admit(request).value();
    std::vector<TokenEvent> events;
    plain->Prefill(kForever, events);
    drafting->Prefill(kForever, events);
    int64_t ready = 0;
    while (plain->decoding() > 0) {
      events.clear();
      plain->Step(events);
      drafting->Step(events);
      ASSERT_EQ(events.size(), 2);
      ASSERT_EQ(events[0].token, events[1].token);
      ready += drafting->ready();
      SavedState expected = plain->Save(a).value();
      SavedState saved = drafting->Save(b).value();
      expected.created = saved.created = 0;
      ASSERT_EQ(WriteStateFile(saved, drafting->state_layout(), {}).value(),
                WriteStateFile(expected, plain->state_layout(), {}).value())
          << "at position " << expected.position;
    }
    EXPECT_GT(ready, 0);
  }
}

TEST_P(GeneratorSpeculationTest, WindowsOfAttentionSeeTheSame) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 4; ++i) {
    requests.push_back(Request(i, 0.2f * static_cast<float>(i), 300));
  }
  ExpectSomeCameTrue(ExpectSame(requests, {.attention_window = 67}));
}

// What arrives is taken in beside steps, and what leaves does so with tokens ready.
TEST_P(GeneratorSpeculationTest, SequencesComeAndGo) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 20; ++i) {
    requests.push_back(Request(i, i % 3 == 0 ? 0.4f : 0.0f, 3 + 7 * i % 50));
  }
  std::vector<Answer> expected;
  const auto plain = NewGenerator(false);
  for (const GenerationRequest& request : requests) {
    expected.push_back(RunAll(*plain, {request}).front());
  }
  const auto generator = NewGenerator(true, {.prefix_slots = 4, .prefix_interval = 8});
  std::map<SequenceId, size_t> running;
  std::map<SequenceId, Answer> answers;
  std::vector<TokenEvent> events;
  size_t next = 0;
  for (int turn = 0; next < requests.size() || generator->used().slots > 0; ++turn) {
    if (next < requests.size() && turn % 3 == 0) {
      if (auto id = generator->Admit(requests[next]); id.ok()) running[*id] = next++;
    }
    generator->Prefill(kAtOnce, events);
    generator->Step(events);
    Take(events, answers);
    for (auto it = running.begin(); it != running.end();) {
      const auto [id, request] = *it++;
      const Answer& answer = answers[id];
      const bool leaves = request % 4 == 1 && answer.tokens.size() >= 6;
      if (answer.finish == FinishReason::kNone && !leaves) continue;
      generator->Release(id);
      running.erase(id);
      std::vector<int32_t> whole = expected[request].tokens;
      if (leaves) whole.resize(std::min(whole.size(), answer.tokens.size()));
      EXPECT_EQ(answer.tokens, whole) << "request " << request;
    }
  }
  EXPECT_EQ(generator->used().bytes, 0);
  EXPECT_GT(generator->drafts().accepted, 0);
}

TEST_P(GeneratorSpeculationTest, ManyDraftsShareTheRowsOfAStep) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 24; ++i) requests.push_back(Request(i, 0, 120));
  ExpectSomeCameTrue(ExpectSame(requests));
}

TEST_P(GeneratorSpeculationTest, AnotherModelGuesses) {
  model_ = ModelOf(12);  // beside which it costs little
  std::vector<GenerationRequest> requests;
  const float temperatures[] = {0, 0.2f, 0.5f, 1.2f};
  for (uint32_t i = 0; i < 8; ++i) {
    requests.push_back(Request(i, temperatures[i % 4], 20 + 5 * i));
    requests.back().changes.frequency_penalty = i % 3 == 0 ? 0.1f : 0.0f;
  }
  for (const int64_t layers : {1, 2}) {
    const auto draft = ModelOf(layers);
    ExpectSomeCameTrue(ExpectSame(requests, {.draft = draft.get()}));
    ExpectSomeCameTrue(ExpectSame(requests, {.attention_window = 67, .draft = draft.get()}));
  }
}

TEST_P(GeneratorSpeculationTest, ADraftModelWithoutRoomGuessesNothing) {
  const auto draft = ModelOf(2);
  GeneratorOptions options{.max_sequences = 2, .key_value_bytes = 1 << 16, .draft = draft.get()};
  const auto generator = Generator::Create(*backend_, *model_, options).value();
  GenerationRequest request = Request(1, 0, 100);
  request.keep_tokens = false;
  EXPECT_EQ(RunAll(*generator, {request}), RunAll(*NewGenerator(false), {request}));
}

TEST_P(GeneratorSpeculationTest, ADraftModelNeedsTheSameTokens) {
  H3Config config = TinyConfig();
  config.vocab_size = 39;
  const auto draft = MakeTestModel(*backend_, config, GetParam());
  const auto status = Generator::Create(*backend_, *model_, {.draft = draft.get()}).status();
  EXPECT_EQ(status.message(), "the draft model has 39 tokens, expected those of the model, 40");
}

TEST(GeneratorSpeculationCases, StatesThatCannotGoBackRefuseIt) {
  const auto backend = MakeCpuBackend({.threads = 1});
  H3Config config = TinyConfig();
  config.mixer = DecoderMixer::kS4d;
  const auto model = MakeTestModel(*backend, config);
  const auto status = Generator::Create(*backend, *model, {.speculate = true}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("cannot go back"), std::string::npos) << status;
}

}  // namespace
}  // namespace hippodrome::generator_speculation_test
