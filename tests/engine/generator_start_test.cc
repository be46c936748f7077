// Sequences that are saved, and that start from what was saved.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/state/state_file.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::generator_start_test {
namespace {

constexpr auto kForever = Generator::Clock::time_point::max();

GenerationRequest Request(int64_t prompt_tokens, int64_t max_tokens, uint32_t seed,
                          float temperature = 0) {
  return {.prompt = RandomIds(prompt_tokens, 40, seed),
          .max_tokens = max_tokens,
          .sampling = {.temperature = temperature, .seed = seed},
          .ignore_eos = true,
          .likeliest = 3};
}

// Tokens and the log probabilities beside them, which show every bit that logits differ in.
struct Answer {
  std::vector<int32_t> tokens;
  std::vector<float> scores;

  bool operator==(const Answer&) const = default;
  void Add(const TokenEvent& event) {
    tokens.push_back(event.token);
    scores.push_back(event.scores->log_probability);
    for (const LikelyToken& likely : event.scores->likeliest) {
      tokens.push_back(likely.token);
      scores.push_back(likely.log_probability);
    }
  }
};

class GeneratorStartTest : public testing::TestWithParam<DType> {
 protected:
  GeneratorStartTest()
      : backend_(MakeCpuBackend({.threads = 2})),
        model_(MakeTestModel(*backend_, TinyConfig(), GetParam())) {}

  std::unique_ptr<Generator> NewGenerator(DType h3_state = DType::kF32) {
    return Generator::Create(*backend_, *model_,
                             {.max_sequences = 3, .key_value_bytes = 1 << 22, .h3_state = h3_state})
        .value();
  }

  // The first `count` tokens of a request, and what it is then.
  std::pair<Answer, SavedState> Run(const GenerationRequest& request, int64_t count,
                                    DType h3_state = DType::kF32) {
    const auto generator = NewGenerator(h3_state);
    const SequenceId id = generator->Admit(request).value();
    std::vector<TokenEvent> events;
    generator->Prefill(kForever, events);
    while (std::ssize(events) < count) generator->Step(events);
    Answer answer;
    for (const TokenEvent& event : events) answer.Add(event);
    SavedState saved = generator->Save(id).value();
    generator->Release(id);
    EXPECT_EQ(generator->held().bytes, 0);
    return {answer, std::move(saved)};
  }

  double WorstAfterRounding(uint32_t seed);

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HybridH3> model_;
};

TEST_P(GeneratorStartTest, GoesOnAsIfItHadNeverStopped) {
  for (const int64_t prompt : {1, 7, 63, 64, 130, 300, 520}) {
    for (const int64_t cut : {1, 2, 9}) {
      GenerationRequest request = Request(prompt, 20, static_cast<uint32_t>(prompt), 1.1f);
      request.changes = {.bias = {{.token = 3, .bias = 0.5f}},
                         .repetition_penalty = 1.1f,
                         .presence_penalty = 0.3f,
                         .frequency_penalty = 0.7f};
      const Answer whole = Run(request, 20).first;
      auto [answer, saved] = Run(request, cut);
      EXPECT_EQ(saved.position, prompt + cut - 1);
      EXPECT_EQ(saved.tokens.size(), static_cast<size_t>(saved.position));
      EXPECT_EQ(saved.prompt_tokens, prompt);
      EXPECT_EQ(saved.seed, request.sampling.seed);
      EXPECT_TRUE(CheckState(saved, NewGenerator()->state_layout()).ok());
      GenerationRequest rest = request;
      rest.prompt = {};
      rest.max_tokens = 20 - cut;
      rest.start = std::make_shared<SavedState>(std::move(saved));
      const auto [tail, end] = Run(rest, 20 - cut);
      answer.tokens.insert(answer.tokens.end(), tail.tokens.begin(), tail.tokens.end());
      answer.scores.insert(answer.scores.end(), tail.scores.begin(), tail.scores.end());
      EXPECT_EQ(answer, whole) << "prompt " << prompt << ", cut after " << cut;
      EXPECT_EQ(end.position, prompt + 19);
    }
  }
}

TEST_P(GeneratorStartTest, TokensThatAreNotKeptChangeNothingElse) {
  GenerationRequest request = Request(30, 5000, 3, 0.9f);
  request.changes.frequency_penalty = 0.1f;
  const auto [answer, kept] = Run(request, 5000);
  request.keep_tokens = false;
  const auto [same, saved] = Run(request, 5000);
  EXPECT_EQ(same, answer);
  EXPECT_EQ(std::ssize(kept.tokens), kept.position);
  EXPECT_EQ(std::ssize(saved.tokens), 0);
  EXPECT_EQ(saved.last_token, kept.last_token);
  EXPECT_EQ(saved.position, kept.position);
  EXPECT_TRUE(saved.layers == kept.layers);
}

TEST_P(GeneratorStartTest, WhatIsSavedTwiceIsTheSame) {
  const GenerationRequest request = Request(90, 8, 5);
  SavedState saved = Run(request, 5).second;
  const auto generator = NewGenerator();
  GenerationRequest rest = request;
  rest.prompt = {};
  rest.start = std::make_shared<SavedState>(saved);
  const SequenceId id = generator->Admit(rest).value();
  SavedState again = generator->Save(id).value();
  again.created = saved.created;
  EXPECT_EQ(again, saved);
}

// The largest difference of a token's log probability behind a state and behind the same rounded to
// bf16.
double GeneratorStartTest::WorstAfterRounding(uint32_t seed) {
  SavedState saved = Run(Request(200, 3, seed), 3).second;
  const auto generator = NewGenerator();
  const StateLayout& layout = generator->state_layout();
  const std::string file = WriteStateFile(saved, layout, {.lossy = true}).value();
  SavedState rounded = ReadStateFile(file, layout).value();
  EXPECT_LT(file.size(), WriteStateFile(saved, layout).value().size() * 0.7);
  GenerationRequest exact = Request(30, 1, seed + 1);
  exact.score_prompt = true;
  GenerationRequest lossy = exact;
  exact.start = std::make_shared<SavedState>(std::move(saved));
  lossy.start = std::make_shared<SavedState>(std::move(rounded));
  std::vector<std::vector<TokenScores>> scores;
  for (const GenerationRequest& request : {exact, lossy}) {
    const SequenceId id = generator->Admit(request).value();
    std::vector<TokenEvent> events;
    generator->Prefill(kForever, events);
    EXPECT_EQ(events.size(), 1u);
    scores.push_back(events[0].prompt_scores);
    // It says so for good.
    EXPECT_EQ(generator->Save(id)->lossy, request.start->lossy);
    generator->Release(id);
  }
  double worst = 0;
  for (size_t i = 0; i < scores[0].size(); ++i) {
    const double difference = scores[0][i].log_probability - scores[1][i].log_probability;
    worst = std::max(worst, std::abs(difference));
  }
  EXPECT_GT(worst, 0);
  return worst;
}

// Rounding to bf16 changes each number of a state by a factor within 1 + 2^-9. What depends on the
// state does by as much, amplified a little by norms and by sums in which terms cancel; the rest of
// a logit, which comes from the tokens that follow, does not. Where the weights are bf16, so are
// what they multiply: those roundings fall otherwise then, each by as much again.
TEST_P(GeneratorStartTest, ARoundedStateGoesOnWithinABound) {
  std::vector<double> worst;  // some texts have a token that is far less likely than others
  for (uint32_t seed = 6; seed < 15; ++seed) worst.push_back(WorstAfterRounding(seed));
  std::nth_element(worst.begin(), worst.begin() + 4, worst.end());
  // Where the difference carries an activation over a border of its own rounding, it moves by 2^-8
  // of its size in bf16, and by 1/127 of the largest of its group, four times as far, in integers.
  const double moves = GetParam() == DType::kF32 ? 16 : GetParam() == DType::kBF16 ? 64 : 256;
  EXPECT_LT(worst[4], moves * 0x1p-9);
}

// A new prompt goes on where the old one's tokens end. How they were cut decides about rounding
// alone; with enough between the best tokens, not about them.
TEST_P(GeneratorStartTest, TakesANewPromptInAfterTheLastToken) {
  const GenerationRequest first = Request(70, 6, 8);
  auto [answer, saved] = Run(first, 6);
  GenerationRequest next = Request(40, 1, 9);
  GenerationRequest whole = next;
  whole.prompt = saved.tokens;
  whole.prompt.push_back(*saved.last_token);
  whole.prompt.insert(whole.prompt.end(), next.prompt.begin(), next.prompt.end());
  whole.score_prompt = true;
  next.start = std::make_shared<SavedState>(std::move(saved));
  next.score_prompt = true;
  const auto generator = NewGenerator();
  const SequenceId id = generator->Admit(next).value();
  EXPECT_EQ(generator->Remaining(id), 1 + 40 + 1);
  generator->Admit(whole).value();
  std::vector<TokenEvent> events;
  generator->Prefill(kForever, events);
  ASSERT_EQ(events.size(), 2u);
  const TokenEvent& resumed = events[events[0].sequence == id ? 0 : 1];
  const TokenEvent& cold = events[events[0].sequence == id ? 1 : 0];
  ASSERT_EQ(resumed.prompt_scores.size(), 40u);
  const double error = GetParam() == DType::kF32 ? 1e-4 : 0.1;
  for (size_t i = 0; i < 40; ++i) {  // that of its first token as well: the last token tells it
    EXPECT_NEAR(resumed.prompt_scores[i].log_probability,
                cold.prompt_scores[cold.prompt_scores.size() - 40 + i].log_probability, error);
  }
  EXPECT_NEAR(resumed.scores->likeliest[0].log_probability,
              cold.scores->likeliest[0].log_probability, error);
  const SavedState end = generator->Save(id).value();
  EXPECT_EQ(end.tokens, whole.prompt);
}

TEST_P(GeneratorStartTest, ForksOfOneStateShareItsPrompt) {
  const auto start = std::make_shared<SavedState>(Run(Request(100, 4, 3), 4).second);
  GenerationRequest request = Request(30, 6, 4, 1.0f);
  request.start = start;
  const Answer expected = Run(request, 6).first;
  const auto generator = NewGenerator();
  const SequenceId a = generator->Admit(request).value();
  const SequenceId b = generator->Admit(request).value();
  std::map<SequenceId, Answer> answers;
  std::vector<TokenEvent> events;
  generator->Prefill(kForever, events);
  while (generator->decoding() > 0) generator->Step(events);
  for (const TokenEvent& event : events) answers[event.sequence].Add(event);
  EXPECT_EQ(answers[a], expected);
  EXPECT_EQ(answers[b], expected);
  EXPECT_EQ(generator->Cached(b), 30);
}

TEST_P(GeneratorStartTest, PenaltiesCountTheTokensOfTheState) {
  SavedState saved = Run(Request(30, 5, 6), 5).second;
  GenerationRequest rest = Request(1, 4, 6);
  rest.changes.frequency_penalty = 1.5f;
  saved.tokens.assign(saved.tokens.size(), 7);
  saved.prompt_tokens = 0;
  rest.prompt = {};
  rest.start = std::make_shared<SavedState>(saved);
  rest.changes.bias = {{.token = 7, .bias = 40}};
  EXPECT_NE(Run(rest, 1).first.tokens[0], 7);  // 34 counts weigh more than the bias
  GenerationRequest after_prompt = rest;
  after_prompt.prompt = {1};  // what was before belongs to the prompt now
  const auto [answer, end] = Run(after_prompt, 1);
  EXPECT_EQ(answer.tokens[0], 7);
  EXPECT_EQ(end.prompt_tokens, 34 + 1 + 1);
  saved.prompt_tokens = 34;
  rest.start = std::make_shared<SavedState>(saved);
  EXPECT_EQ(Run(rest, 1).first.tokens[0], 7);
  saved.tokens.clear();
  rest.start = std::make_shared<SavedState>(saved);
  EXPECT_TRUE(absl::IsInvalidArgument(NewGenerator()->Validate(rest)));
  rest.changes = {};
  const SavedState unknown = Run(rest, 2).second;
  EXPECT_TRUE(unknown.tokens.empty());
  EXPECT_EQ(unknown.position, saved.position + 2);
}

TEST_P(GeneratorStartTest, RefusesWhatItCannotGoOnFrom) {
  const auto generator = NewGenerator();
  const SavedState saved = Run(Request(10, 3, 6), 3).second;
  GenerationRequest request{.start = std::make_shared<SavedState>(saved)};
  EXPECT_TRUE(generator->Validate(request).ok());
  const auto refused = [&](auto change) {
    SavedState changed = saved;
    change(changed);
    request.start = std::make_shared<SavedState>(std::move(changed));
    return generator->Validate(request);
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(refused([](SavedState& s) { s.model = "another"; })));
  EXPECT_TRUE(absl::IsInvalidArgument(refused([](SavedState& s) { s.layers.pop_back(); })));
  EXPECT_TRUE(absl::IsInvalidArgument(refused([](SavedState& s) { s.last_token.reset(); })));
  EXPECT_TRUE(absl::IsInvalidArgument(refused([](SavedState& s) { s.position = INT64_MAX; })));
  request.start = std::make_shared<SavedState>(saved);
  request.max_tokens = 64 * generator->capacity().pages - 13 + 2;
  EXPECT_TRUE(absl::IsOutOfRange(generator->Validate(request)));
  --request.max_tokens;
  EXPECT_TRUE(generator->Validate(request).ok());
  EXPECT_EQ(TokensBefore(request), 13);
}

// Wherever a prompt is between two of its parts, the rest goes on from there with the same bits.
TEST_P(GeneratorStartTest, HalfAPromptGoesOnAsIfItHadNeverStopped) {
  const auto before = std::make_shared<SavedState>(Run(Request(37, 2, 4), 2).second);
  for (const bool with_start : {false, true}) {
    GenerationRequest request = Request(1300, 8, 7, 1.1f);
    request.changes = {.repetition_penalty = 1.1f, .frequency_penalty = 0.7f};
    if (with_start) request.start = before;
    const Answer whole = Run(request, 8).first;
    const auto generator = NewGenerator();
    const SequenceId leader = generator->Admit(request).value();
    const SequenceId follower = generator->Admit(request).value();
    std::vector<TokenEvent> events;
    std::vector<SavedState> saved;
    while (generator->prefilling()) {
      generator->Prefill(Generator::Clock::time_point::min(), events);
      absl::StatusOr<SavedState> state = generator->Save(saved.size() % 2 == 0 ? leader : follower);
      if (events.empty() && state.ok()) saved.push_back(*std::move(state));
    }
    ASSERT_EQ(saved.size(), 2u);
    for (const SavedState& half : saved) {
      EXPECT_EQ(half.position % 512, 0);
      EXPECT_EQ(half.prompt_tokens, half.position);
      EXPECT_FALSE(half.last_token);
      EXPECT_TRUE(CheckState(half, generator->state_layout()).ok());
      const int64_t taken_in = half.position - (with_start ? before->position + 1 : 0);
      GenerationRequest rest = request;
      rest.prompt.erase(rest.prompt.begin(), rest.prompt.begin() + taken_in);
      rest.start = std::make_shared<SavedState>(half);
      rest.sampling.seed = half.seed;
      EXPECT_EQ(TokensBefore(rest), TokensBefore(request));
      EXPECT_EQ(Run(rest, 8).first, whole) << "after " << half.position;
    }
  }
}

// Exactly, if the states of both have the same type.
TEST_P(GeneratorStartTest, GoesOnFromH3StatesOfAnotherType) {
  const GenerationRequest request = Request(300, 40, 5);
  const Answer whole = Run(request, 40, DType::kBF16).first;
  EXPECT_NE(whole.scores, Run(request, 40).first.scores);
  for (const DType from : {DType::kF32, DType::kBF16}) {
    SavedState saved = Run(request, 13, from).second;
    GenerationRequest rest = request;
    rest.prompt = {};
    rest.max_tokens = 27;
    rest.start = std::make_shared<SavedState>(saved);
    const auto [answer, end] = Run(rest, 27, DType::kBF16);
    EXPECT_EQ(end.exact, from == DType::kBF16);
    EXPECT_EQ(GoesOnExactly(saved, NewGenerator(DType::kBF16)->arithmetic()), end.exact);
    EXPECT_NE(GoesOnExactly(saved, NewGenerator()->arithmetic()), end.exact);
    const std::vector<float> last(whole.scores.end() - std::ssize(answer.scores),
                                  whole.scores.end());
    EXPECT_EQ(answer.scores == last, end.exact);
  }
}

TEST_P(GeneratorStartTest, SavesNothingBeforeAPartOfThePromptIsTakenIn) {
  const auto generator = NewGenerator();
  const SequenceId id = generator->Admit(Request(600, 3, 6)).value();
  EXPECT_TRUE(absl::IsFailedPrecondition(generator->Save(id).status()));
  std::vector<TokenEvent> events;
  generator->Prefill(Generator::Clock::time_point::min(), events);
  EXPECT_TRUE(absl::IsFailedPrecondition(generator->Save(id).status()));
}

INSTANTIATE_TEST_SUITE_P(Weights, GeneratorStartTest, testing::ValuesIn(kWeightTypes));

}  // namespace
}  // namespace hippodrome::generator_start_test
