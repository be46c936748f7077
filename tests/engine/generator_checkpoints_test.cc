// What a sequence keeps of its earlier positions, and going back to them.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/state/rewind.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::generator_checkpoints_test {
namespace {

constexpr auto kForever = Generator::Clock::time_point::max();

GenerationRequest Request(int64_t prompt_tokens, int64_t max_tokens, int64_t interval) {
  const auto seed = static_cast<uint32_t>(prompt_tokens);
  return {.prompt = RandomIds(prompt_tokens, 40, seed),
          .max_tokens = max_tokens,
          .sampling = {.temperature = 1.1f, .seed = seed},
          .ignore_eos = true,
          .likeliest = 2,
          .checkpoint_interval = interval};
}

std::vector<int64_t> Positions(const SavedState& state) {
  std::vector<int64_t> positions;
  for (const Checkpoint& checkpoint : state.checkpoints) positions.push_back(checkpoint.position);
  return positions;
}

std::vector<int64_t> Multiples(int64_t from, int64_t to, int64_t step) {
  std::vector<int64_t> positions;
  for (int64_t at = from; at <= to; at += step) positions.push_back(at);
  return positions;
}

std::shared_ptr<const SavedState> Share(SavedState state) {
  return std::make_shared<const SavedState>(std::move(state));
}

class GeneratorCheckpointsTest : public testing::TestWithParam<DType> {
 protected:
  GeneratorCheckpointsTest()
      : backend_(MakeCpuBackend({.threads = 2})),
        model_(MakeTestModel(*backend_, TinyConfig(), GetParam())) {}

  std::unique_ptr<Generator> NewGenerator(const GeneratorOptions& options = {
                                              .max_sequences = 3, .key_value_bytes = 1 << 22}) {
    return Generator::Create(*backend_, *model_, options).value();
  }

  static std::vector<float> Finish(Generator& generator) {
    std::vector<TokenEvent> events;
    generator.Prefill(kForever, events);
    while (generator.decoding() > 0) generator.Step(events);
    std::vector<float> scores;
    for (const TokenEvent& event : events) {
      for (const LikelyToken& likely : event.scores->likeliest) {
        scores.push_back(likely.log_probability);
      }
    }
    return scores;
  }

  // What a request is at its end, and the scores of its tokens.
  std::pair<SavedState, std::vector<float>> Run(const GenerationRequest& request) {
    const auto generator = NewGenerator();
    const SequenceId id = generator->Admit(request).value();
    std::vector<float> scores = Finish(*generator);
    SavedState saved = generator->Save(id).value();
    saved.created = 0;
    EXPECT_TRUE(CheckState(saved, generator->state_layout()).ok());
    return {std::move(saved), std::move(scores)};
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HybridH3> model_;
};

TEST_P(GeneratorCheckpointsTest, AnAnswerDoesNotDependOnThem) {
  const auto start = Share(Run(Request(13, 9, 0)).first);
  for (const int64_t prompt : {1, 7, 64, 130, 255, 256, 300, 520, 1100}) {
    for (const int64_t interval : {8, 64, 256, 512}) {
      for (const auto& from : {std::shared_ptr<const SavedState>(), start}) {
        GenerationRequest with = Request(prompt, 20, interval);
        with.start = from;
        GenerationRequest without = with;
        without.checkpoint_interval = 0;
        auto [expected, expected_scores] = Run(without);
        auto [saved, scores] = Run(with);
        EXPECT_TRUE(expected.checkpoints.empty());
        saved.checkpoints.clear();
        EXPECT_EQ(scores, expected_scores) << "prompt " << prompt << ", interval " << interval;
        EXPECT_EQ(saved, expected) << "prompt " << prompt << ", interval " << interval;
      }
    }
  }
}

// Whether it was reached in the prompt or by a step.
TEST_P(GeneratorCheckpointsTest, HaveTheBitsOfARunThatEndsThere) {
  for (const int64_t prompt : {40, 250, 400}) {
    const GenerationRequest request = Request(prompt, 60, 16);
    const SavedState saved = Run(request).first;
    ASSERT_FALSE(saved.checkpoints.empty());
    for (const int64_t position : Positions(saved)) {
      GenerationRequest shorter = request;
      shorter.checkpoint_interval = 0;
      shorter.prompt.resize(static_cast<size_t>(std::min(prompt, position)));
      shorter.max_tokens = position < prompt ? 1 : position - prompt + 1;
      const SavedState expected = Run(shorter).first;
      const Rewound rewound = Rewind(saved, position).value();
      EXPECT_TRUE(rewound.tokens.empty());
      EXPECT_TRUE(rewound.state->exact);
      EXPECT_EQ(rewound.state->layers, expected.layers) << prompt << ", at " << position;
      EXPECT_EQ(rewound.state->tokens, expected.tokens);
    }
  }
}

TEST_P(GeneratorCheckpointsTest, StandAtMultiplesOfTheInterval) {
  const auto at = [&](int64_t prompt, int64_t tokens, int64_t interval) {
    return Positions(Run(Request(prompt, tokens, interval)).first);
  };
  EXPECT_EQ(at(40, 30, 8), Multiples(8, 64, 8));
  EXPECT_EQ(at(100, 60, 64), Multiples(64, 128, 64));
  EXPECT_EQ(at(255, 2, 64), Multiples(64, 192, 64));
  EXPECT_EQ(at(256, 2, 64), Multiples(256, 256, 64)) << "transformed together";
  EXPECT_EQ(at(700, 2, 64), Multiples(256, 640, 64));
  EXPECT_EQ(at(64, 1, 64), Multiples(64, 0, 64)) << "that would be the state itself";
  EXPECT_EQ(at(10, 5, 64), Multiples(64, 0, 64));
  EXPECT_EQ(at(850, 2, 8), Multiples(848 - 63 * 8, 848, 8)) << "the last ones";
}

TEST_P(GeneratorCheckpointsTest, StayWithTheStateThatGoesOn) {
  const SavedState first = Run(Request(100, 29, 64)).first;
  ASSERT_EQ(first.position, 128);
  EXPECT_EQ(Positions(first), Multiples(64, 64, 64));
  GenerationRequest next = Request(70, 3, 64);
  next.start = Share(first);
  const SavedState second = Run(next).first;
  EXPECT_EQ(Positions(second), Multiples(64, 192, 64));
  EXPECT_EQ(second.checkpoints[0], first.checkpoints[0]);
  next.checkpoint_interval = 0;
  EXPECT_EQ(Positions(Run(next).first), Positions(first));
  // One that had none has one where it was gone on from, if that is an interval or more.
  next.checkpoint_interval = 64;
  next.start = Share(Run(Request(100, 20, 0)).first);
  EXPECT_EQ(Positions(Run(next).first), (std::vector<int64_t>{119, 128}));
  next.start = Share(Run(Request(40, 20, 0)).first);
  EXPECT_EQ(Positions(Run(next).first), (std::vector<int64_t>{64, 128}));
}

TEST_P(GeneratorCheckpointsTest, ThereIsOneBehindASharedPrefix) {
  const auto generator =
      NewGenerator({.max_sequences = 3, .key_value_bytes = 1 << 22, .prefix_slots = 4});
  GenerationRequest request = Request(200, 3, 64);
  generator->Admit(request).value();
  Finish(*generator);
  request.prompt.resize(250, 5);
  request.prompt[200] = 1;
  const SequenceId id = generator->Admit(request).value();
  Finish(*generator);
  EXPECT_EQ(generator->Cached(id), 192);
  EXPECT_EQ(Positions(generator->Save(id).value()), (std::vector<int64_t>{192}));
}

TEST_P(GeneratorCheckpointsTest, AreThoseOfEachSequenceThatSharesAPrompt) {
  const auto generator = NewGenerator();
  const GenerationRequest request = Request(100, 40, 32);
  const SequenceId leader = generator->Admit(request).value();
  const SequenceId heir = generator->Admit(request).value();
  const SequenceId follower = generator->Admit(request).value();
  std::vector<TokenEvent> events;
  generator->Prefill(Generator::Clock::time_point::min(), events);
  generator->Release(leader);
  Finish(*generator);
  const SavedState alone = Run(request).first;
  for (const SequenceId id : {heir, follower}) {
    SavedState saved = generator->Save(id).value();
    saved.created = 0;
    EXPECT_EQ(saved, alone);
  }
}

TEST_P(GeneratorCheckpointsTest, WhoHasMostGivesRoom) {
  const GenerationRequest longer = Request(240, 10, 8);
  int64_t bytes = 0;  // of one checkpoint, whatever is pending
  const StateLayout layout = NewGenerator()->state_layout();
  for (const LayerLayout& layer : layout.layers) {
    for (const StateArray& array : layer.arrays) bytes += array.values() * int64_t{sizeof(float)};
  }
  const auto generator = NewGenerator(
      {.max_sequences = 3, .key_value_bytes = 1 << 22, .checkpoint_bytes = 10 * bytes + 1});
  const SequenceId a = generator->Admit(longer).value();
  Finish(*generator);
  EXPECT_EQ(Positions(generator->Save(a).value()), Multiples(176, 248, 8));
  const SequenceId b = generator->Admit(Request(30, 4, 8)).value();
  Finish(*generator);
  EXPECT_EQ(Positions(generator->Save(a).value()), Multiples(208, 248, 8));
  EXPECT_EQ(Positions(generator->Save(b).value()), Multiples(8, 32, 8));
  const auto without =
      NewGenerator({.max_sequences = 3, .key_value_bytes = 1 << 22, .checkpoint_bytes = bytes - 1});
  const SequenceId c = without->Admit(longer).value();
  Finish(*without);
  EXPECT_TRUE(without->Save(c).value().checkpoints.empty());
}

TEST_P(GeneratorCheckpointsTest, GoesBackAndAnotherWay) {
  const SavedState saved = Run(Request(100, 60, 32)).first;
  for (const int64_t position : {20, 96, 109, 128, 150}) {
    Rewound rewound = Rewind(saved, position).value();
    GenerationRequest request = Request(5, 3, 32);
    request.prompt.insert(request.prompt.begin(), rewound.tokens.begin(), rewound.tokens.end());
    if (rewound.state) request.start = Share(*std::move(rewound.state));
    ASSERT_TRUE(NewGenerator()->Validate(request).ok());
    const auto [end, scores] = Run(request);
    GenerationRequest whole = Request(5, 3, 0);
    whole.prompt.insert(whole.prompt.begin(), saved.tokens.begin(),
                        saved.tokens.begin() + position);
    const auto [expected, expected_scores] = Run(whole);
    EXPECT_EQ(end.position, position + 5 + 2);
    EXPECT_EQ(end.exact, position % 32 == 0 || position < 32) << position;
    EXPECT_EQ(Positions(end), Multiples(32, end.position - 1, 32));
    // The same sums in another order.
    const double error = GetParam() == DType::kF32 ? 1e-4 : 0.1;
    ASSERT_EQ(scores.size(), expected_scores.size());
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(scores[i], expected_scores[i], error);
  }
}

// What was rounded once stays so, however often it is saved again.
TEST_P(GeneratorCheckpointsTest, WhatIsNotExactIsNotExactLater) {
  SavedState saved = Run(Request(20, 5, 0)).first;
  EXPECT_TRUE(saved.exact);
  GenerationRequest next = Request(4, 2, 0);
  next.start = Share(saved);
  EXPECT_TRUE(Run(next).first.exact);
  saved.lossy = true;
  next.start = Share(saved);
  const SavedState behind = Run(next).first;
  EXPECT_FALSE(behind.exact);
  EXPECT_TRUE(behind.lossy);
  next.start = Share(behind);
  EXPECT_FALSE(Run(next).first.exact);
  saved.lossy = false;
  saved.arithmetic = "another";
  next.start = Share(saved);
  EXPECT_FALSE(Run(next).first.exact);
}

TEST_P(GeneratorCheckpointsTest, RefusesIntervalsBetweenBlocks) {
  const auto generator = NewGenerator();
  for (const int64_t interval : {int64_t{-8}, int64_t{-1}, int64_t{1}, int64_t{12}, INT64_MAX}) {
    const absl::Status status = generator->Validate(Request(10, 3, interval));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << interval;
    EXPECT_EQ(Message(status),
              "checkpoint_interval: " + std::to_string(interval) + ", expected a multiple of 8");
  }
  EXPECT_TRUE(generator->Validate(Request(10, 3, INT64_MAX - 7)).ok());
  EXPECT_TRUE(Run(Request(300, 3, INT64_MAX - 7)).first.checkpoints.empty());
}

TEST_P(GeneratorCheckpointsTest, AWindowOfAttentionHasNone) {
  const auto generator =
      NewGenerator({.max_sequences = 1, .key_value_bytes = 1 << 22, .attention_window = 64});
  EXPECT_TRUE(absl::IsInvalidArgument(generator->Validate(Request(10, 3, 64))));
  GenerationRequest request = Request(10, 300, 0);
  request.start = Share(Run(Request(100, 40, 64)).first);
  ASSERT_EQ(request.start->checkpoints.size(), 2u);
  ASSERT_TRUE(generator->Validate(request).ok());
  const SequenceId id = generator->Admit(request).value();
  Finish(*generator);
  const SavedState saved = generator->Save(id).value();
  EXPECT_GT(saved.first_row, 0);
  EXPECT_TRUE(CheckState(saved, generator->state_layout()).ok());
}

INSTANTIATE_TEST_SUITE_P(Weights, GeneratorCheckpointsTest, testing::ValuesIn(kWeightTypes));

}  // namespace
}  // namespace hippodrome::generator_checkpoints_test
