// Sequences whose attention sees a window alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/state/state_file.h"
#include "kernels/make_backend.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/freed_state.h"
#include "tests/testing/random_model.h"
#include "tests/testing/test_backend.h"

namespace hippodrome::attention_window_test {
namespace {

constexpr auto kForever = Generator::Clock::time_point::max();
constexpr auto kAtOnce = Generator::Clock::time_point::min();

// Tokens, and the log probabilities beside them, which show every bit that logits differ in.
struct Answer {
  std::vector<int32_t> tokens;
  std::vector<float> scores;

  bool operator==(const Answer&) const = default;
};

GenerationRequest Request(int64_t prompt_tokens, int64_t max_tokens, uint32_t seed) {
  return {.prompt = RandomIds(prompt_tokens, 40, seed),
          .max_tokens = max_tokens,
          .sampling = {.temperature = seed % 2 == 0 ? 0.0f : 1.2f, .seed = seed},
          .ignore_eos = true,
          .likeliest = 0};
}

class AttentionWindowTest : public testing::Test {
 protected:
  AttentionWindowTest()
      : backend_(MakeCpuBackend({.threads = 2})), model_(MakeTestModel(*backend_, TinyConfig())) {}

  std::unique_ptr<Generator> NewGenerator(int64_t window, int64_t pages = 200,
                                          int64_t prefix_slots = 0) {
    auto generator = Generator::Create(*backend_, *model_,
                                       {.max_sequences = 8,
                                        .key_value_bytes = pages * kPageTokens * 2 * 32 * 4,
                                        .attention_window = window,
                                        .prefix_slots = prefix_slots,
                                        .prefix_interval = 128})
                         .value();
    generator->WatchFreed([this](const LayerStates& layers, const SequenceState& freed) {
      FillFreed(*backend_, layers, freed);  // with NaN
    });
    return generator;
  }

  // Goes on until so many tokens are there, or the end.
  static void Continue(Generator& generator, size_t tokens, Answer& answer) {
    while (answer.tokens.size() < tokens) {
      std::vector<TokenEvent> events;
      generator.Prefill(kForever, events);
      if (events.empty()) generator.Step(events);
      if (events.empty()) return;
      for (const TokenEvent& event : events) {
        answer.tokens.push_back(event.token);
        answer.scores.push_back(event.scores->log_probability);
      }
    }
  }

  Answer Run(Generator& generator, const GenerationRequest& request) {
    const SequenceId id = generator.Admit(request).value();
    Answer answer;
    Continue(generator, static_cast<size_t>(request.max_tokens), answer);
    generator.Release(id);
    return answer;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HybridH3> model_;
};

TEST_F(AttentionWindowTest, ThatSeesAllChangesNoBit) {
  const GenerationRequest request = Request(300, 100, 1);
  EXPECT_EQ(Run(*NewGenerator(400), request), Run(*NewGenerator(0), request));
}

TEST_F(AttentionWindowTest, ChangesWhatLongerTextsSay) {
  const GenerationRequest request = Request(300, 100, 1);
  EXPECT_NE(Run(*NewGenerator(64), request), Run(*NewGenerator(0), request));
}

// The definition, in double precision.
TEST_F(AttentionWindowTest, IsThatOfTheReference) {
  const auto reference = MakeReferenceBackend();
  const auto model = MakeTestModel(*reference, TinyConfig());
  const auto exact =
      Generator::Create(
          *reference, *model,
          {.max_sequences = 1, .key_value_bytes = int64_t{1} << 20, .attention_window = 100})
          .value();
  const GenerationRequest request = Request(230, 60, 2);
  const Answer expected = Run(*exact, request);
  const Answer answer = Run(*NewGenerator(100), request);
  EXPECT_EQ(answer.tokens, expected.tokens);
  for (size_t i = 0; i < expected.scores.size(); ++i) {
    EXPECT_NEAR(answer.scores[i], expected.scores[i], 1e-4) << "token " << i;
  }
}

TEST_F(AttentionWindowTest, HoldsAFewPagesHoweverLongTheStream) {
  const int64_t window = 128;
  const auto generator = NewGenerator(window, 12);
  const GenerationRequest request = Request(10, 20 * window, 3);
  const int64_t cost = generator->Cost(10, request.max_tokens).bytes;
  EXPECT_EQ(cost, generator->Cost(10, std::numeric_limits<int64_t>::max()).bytes);
  EXPECT_EQ(cost, generator->Cost(1000000, 1000000).bytes);
  ASSERT_TRUE(generator->Validate(request).ok());
  const SequenceId id = generator->Admit(request).value();
  Answer answer;
  for (size_t tokens = 1; tokens <= static_cast<size_t>(request.max_tokens); tokens += 63) {
    Continue(*generator, tokens, answer);
    ASSERT_EQ(generator->held().bytes, cost);
    ASSERT_EQ(generator->used().bytes, cost);
  }
  generator->Release(id);
  EXPECT_EQ(generator->held().bytes, 0);
}

// A prompt of many chunks in little more room than the window.
TEST_F(AttentionWindowTest, TakesInPromptsLargerThanItsPages) {
  const GenerationRequest request = Request(3000, 20, 4);
  const auto small = NewGenerator(100, 11);
  const auto large = NewGenerator(100);
  EXPECT_EQ(Run(*small, request), Run(*large, request));
  const auto without = NewGenerator(0, 11);
  EXPECT_EQ(without->Validate(request).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(AttentionWindowTest, NeighboursForksAndHitsChangeNoBit) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 6; ++i) requests.push_back(Request(150 + 100 * i, 30 + 40 * i, i));
  requests[3].prompt = requests[4].prompt;  // one takes it in for both
  std::copy_n(requests[4].prompt.begin(), 400, requests[5].prompt.begin());
  const auto generator = NewGenerator(90, 100, 6);
  for (int round = 0; round < 2; ++round) {
    std::vector<SequenceId> ids;
    for (const GenerationRequest& request : requests) {
      ids.push_back(generator->Admit(request).value());
    }
    std::vector<TokenEvent> events;
    while (generator->prefilling() || generator->decoding() > 0) {
      generator->Prefill(kAtOnce, events);
      generator->Step(events);
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      Answer answer;
      for (const TokenEvent& event : events) {
        if (event.sequence != ids[i]) continue;
        answer.tokens.push_back(event.token);
        answer.scores.push_back(event.scores->log_probability);
      }
      EXPECT_EQ(answer, Run(*NewGenerator(90), requests[i])) << "request " << i;
      generator->Release(ids[i]);
    }
  }
  EXPECT_GT(generator->prefixes().hits, 0);
  generator->ClearPrefixes();
  EXPECT_EQ(generator->held().bytes, 0);
}

// A sequence saved after so many new tokens, by way of the file.
class SavedWindowTest : public AttentionWindowTest {
 protected:
  SavedState SaveAfter(int64_t window, size_t tokens) {
    const auto generator = NewGenerator(window);
    const SequenceId id = generator->Admit(request_).value();
    Answer answer;
    Continue(*generator, tokens, answer);
    const SavedState saved = generator->Save(id).value();
    const std::string file = WriteStateFile(saved, generator->state_layout()).value();
    const SavedState read = ReadStateFile(file, generator->state_layout()).value();
    EXPECT_EQ(read, saved);
    return read;
  }

  GenerationRequest GoOn(SavedState state, size_t tokens) const {
    GenerationRequest rest = request_;
    rest.prompt = {};
    rest.max_tokens -= static_cast<int64_t>(tokens);
    rest.start = std::make_shared<const SavedState>(std::move(state));
    return rest;
  }

  const GenerationRequest request_ = Request(200, 200, 7);
};

TEST_F(SavedWindowTest, GoesOnExactly) {
  const Answer whole = Run(*NewGenerator(100), request_);
  for (const size_t tokens : {1u, 90u, 91u, 150u}) {
    const SavedState state = SaveAfter(100, tokens);
    EXPECT_EQ(state.first_row, (state.position + 1 - 100) / 64 * 64);
    EXPECT_TRUE(state.arithmetic.ends_with(" window 100")) << state.arithmetic;
    const Answer rest = Run(*NewGenerator(100, 11), GoOn(state, tokens));
    EXPECT_TRUE(std::equal(rest.scores.begin(), rest.scores.end(),
                           whole.scores.begin() + static_cast<int64_t>(tokens), whole.scores.end()))
        << tokens;
  }
}

TEST_F(SavedWindowTest, OfAFullStateAWindowTakesItsRows) {
  const SavedState full = SaveAfter(0, 40);
  EXPECT_EQ(full.first_row, 0);
  EXPECT_EQ(full.arithmetic.find("window"), std::string::npos);
  const auto generator = NewGenerator(100, 11);
  EXPECT_NE(generator->arithmetic(), full.arithmetic);
  EXPECT_EQ(Run(*generator, GoOn(full, 40)).tokens.size(), 160u);
}

TEST_F(SavedWindowTest, WithoutAWindowItIsRefused) {
  const SavedState state = SaveAfter(100, 40);
  for (const int64_t window : {0, 200}) {
    const auto generator = NewGenerator(window);
    const absl::Status status = generator->Validate(GoOn(state, 40));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Field(status), "first_row") << status;
  }
  // A narrower one finds what it needs.
  EXPECT_TRUE(NewGenerator(64)->Validate(GoOn(state, 40)).ok());
}

// A few rows may claim to be those of any position.
TEST_F(SavedWindowTest, PositionsEnd) {
  SavedState state = SaveAfter(100, 40);
  const int64_t blocks = INT32_MAX / 64 - 10;
  state.position += 64 * blocks;
  state.first_row += 64 * blocks;
  state.tokens = {};
  EXPECT_EQ(NewGenerator(100)->Validate(GoOn(state, 40)).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(AttentionWindowTest, WhatMakesNoSenseIsRefused) {
  const auto create = [&](const HybridH3& model, int64_t window) {
    return Generator::Create(*backend_, model, {.attention_window = window}).status();
  };
  for (const int64_t window : {-1, 1, 63}) {
    EXPECT_EQ(create(*model_, window).code(), absl::StatusCode::kInvalidArgument) << window;
  }
  H3Config config = TinyConfig();
  config.attention_layers = {};
  config.attention_heads = 0;
  const auto recurrent = MakeTestModel(*backend_, config);
  const absl::Status status = create(*recurrent, 64);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("no attention layers"), std::string::npos) << status;
}

}  // namespace
}  // namespace hippodrome::attention_window_test
