// Choices with adjustments and log probabilities inside recorded steps, under the emulator.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <memory>
#include <vector>

#include "engine/generator.h"
#include "engine/passes/forward.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/cuda_on_cpu/runtime_watch.h"
#include "tests/testing/random_model.h"

namespace hippodrome::emulated_choice_test {
namespace {

struct Answer {
  std::vector<int32_t> tokens;
  std::vector<TokenScores> scores;
};

class EmulatedChoiceTest : public testing::Test {
 protected:
  EmulatedChoiceTest()
      : generator_(*Generator::Create(backend_, *model_,
                                      {.max_sequences = 4, .key_value_bytes = 1 << 20})) {}

  // Runs all at once, so that what a step records changes as they end.
  std::vector<Answer> Run(const std::vector<GenerationRequest>& requests) {
    std::map<SequenceId, size_t> places;
    for (size_t i = 0; i < requests.size(); ++i) places[*generator_->Admit(requests[i])] = i;
    std::vector<TokenEvent> events;
    generator_->Prefill(Generator::Clock::time_point::max(), events);
    while (generator_->decoding() > 0) generator_->Step(events);
    std::vector<Answer> answers(requests.size());
    for (const TokenEvent& event : events) {
      Answer& answer = answers[places.at(event.sequence)];
      answer.tokens.push_back(event.token);
      if (event.scores) answer.scores.push_back(*event.scores);
    }
    for (const auto& [id, place] : places) generator_->Release(id);
    return answers;
  }

  CudaBackend backend_;
  const std::unique_ptr<HybridH3> model_ = MakeTestModel(backend_, TinyConfig());
  const std::unique_ptr<Generator> generator_;
};

// `tokens` new ones: with everything, with log probabilities alone, and with nothing.
std::vector<GenerationRequest> Mixed(int64_t tokens) {
  const GenerationRequest plain = {.prompt = RandomIds(6, 40, 2),
                                   .max_tokens = tokens,
                                   .sampling = {.temperature = 0},
                                   .ignore_eos = true};
  std::vector<GenerationRequest> requests(3, plain);
  requests[0].changes = {.bias = {{3, 2}, {11, -50}}, .repetition_penalty = 1.3f};
  requests[0].changes.presence_penalty = 0.5f;
  requests[0].likeliest = 5;
  requests[1].prompt = RandomIds(9, 40, 7);
  requests[1].likeliest = 0;
  requests[1].max_tokens = tokens + 3;
  requests[2].sampling = {.temperature = 1.2f, .seed = 4};
  requests[2].max_tokens = tokens + 6;
  return requests;
}

void ExpectSame(const Answer& found, const Answer& expected) {
  EXPECT_EQ(found.tokens, expected.tokens);
  ASSERT_EQ(found.scores.size(), expected.scores.size());
  for (size_t t = 0; t < found.scores.size(); ++t) {
    const TokenScores &a = found.scores[t], &b = expected.scores[t];
    EXPECT_EQ(std::bit_cast<uint32_t>(a.log_probability),
              std::bit_cast<uint32_t>(b.log_probability));
    ASSERT_EQ(a.likeliest.size(), b.likeliest.size());
    for (size_t i = 0; i < a.likeliest.size(); ++i) {
      EXPECT_EQ(a.likeliest[i].token, b.likeliest[i].token);
      EXPECT_EQ(a.likeliest[i].log_probability, b.likeliest[i].log_probability);
    }
  }
}

TEST_F(EmulatedChoiceTest, SequencesThatAskForDifferentThingsAreAsEachAlone) {
  const std::vector<GenerationRequest> requests = Mixed(7);
  const std::vector<Answer> together = Run(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectSame(together[i], Run({requests[i]})[0]);
  }
  EXPECT_EQ(together[0].scores.size(), 7u);
  EXPECT_EQ(together[0].scores[0].likeliest.size(), 5u);
  EXPECT_EQ(together[1].scores.size(), 10u);
  EXPECT_TRUE(together[2].scores.empty());
}

// Another way through the model: all positions at once, and no recording.
TEST_F(EmulatedChoiceTest, LogProbabilitiesAreThoseOfTheWholeText) {
  for (const GenerationRequest& request : Mixed(7)) {
    if (!request.likeliest) continue;
    const Answer answer = Run({request})[0];
    std::vector<int32_t> ids = request.prompt;
    ids.insert(ids.end(), answer.tokens.begin(), answer.tokens.end());
    const auto whole = ForwardScores(backend_, *model_, ids, 1);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (size_t t = 0; t < answer.scores.size(); ++t) {
      EXPECT_NEAR(answer.scores[t].log_probability,
                  (*whole)[request.prompt.size() + t].log_probability, 1e-4);
    }
  }
}

// Recordings hold the memory of adjustments: more of them than before need another.
TEST_F(EmulatedChoiceTest, MoreAdjustmentsThanARecordingKnewTakeEffect) {
  GenerationRequest request = Mixed(8)[0];
  Run({request});
  request.changes.bias.clear();
  for (int32_t token = 0; token < 40; ++token) request.changes.bias.push_back({token, -90});
  request.changes.bias[17].bias = 90;
  const std::vector<int32_t> tokens = Run({request})[0].tokens;
  EXPECT_EQ(tokens, std::vector<int32_t>(8, 17));
}

TEST_F(EmulatedChoiceTest, ARequestLikeOneBeforeAllocatesNothing) {
  const std::vector<GenerationRequest> requests = Mixed(5);
  const std::vector<Answer> first = Run(requests);
  const int64_t before = cuda_on_cpu::AllocationCount();
  const std::vector<Answer> second = Run(requests);
  EXPECT_EQ(cuda_on_cpu::AllocationCount(), before);
  for (size_t i = 0; i < requests.size(); ++i) ExpectSame(second[i], first[i]);
}

}  // namespace
}  // namespace hippodrome::emulated_choice_test
