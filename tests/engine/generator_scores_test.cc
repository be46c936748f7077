// Log probabilities, penalties and biases of sequences in batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/forward.h"
#include "kernels/cpu/rows/sample.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"
#include "tools/compare/forwarding_backend.h"

namespace hippodrome::generator_scores_test {
namespace {

constexpr auto kAtOnce = Generator::Clock::time_point::min();

struct Answer {
  std::vector<int32_t> tokens;
  std::vector<TokenScores> scores;
  std::vector<TokenScores> prompt;
  FinishReason finish = FinishReason::kNone;
};

uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }

class GeneratorScoresTest : public testing::Test {
 protected:
  GeneratorScoresTest()
      : backend_(MakeCpuBackend({.threads = 2})), model_(MakeTestModel(*backend_, TinyConfig())) {}

  // At most `batch` at a time, which join as others leave; prefill is interrupted all the time.
  std::vector<Answer> Run(Backend& backend, const std::vector<GenerationRequest>& requests,
                          int64_t batch) {
    const auto generator = Generator::Create(backend, *model_, {batch, 1 << 24}).value();
    std::vector<Answer> answers(requests.size());
    std::map<SequenceId, size_t> running;
    size_t next = 0, finished = 0;
    while (finished < requests.size()) {
      while (next < requests.size()) {
        const auto id = generator->Admit(requests[next]);
        if (!id.ok()) break;
        running[*id] = next++;
      }
      std::vector<TokenEvent> events;
      generator->Prefill(kAtOnce, events);
      generator->Step(events);
      for (TokenEvent& event : events) {
        Answer& answer = answers[running.at(event.sequence)];
        if (event.token >= 0) answer.tokens.push_back(event.token);
        if (event.scores) answer.scores.push_back(*event.scores);
        if (!event.prompt_scores.empty()) answer.prompt = std::move(event.prompt_scores);
        answer.finish = event.finish;
        if (event.finish == FinishReason::kNone) continue;
        generator->Release(event.sequence);
        ++finished;
      }
    }
    EXPECT_EQ(generator->used().bytes, 0);
    return answers;
  }
  std::vector<Answer> Run(const std::vector<GenerationRequest>& requests, int64_t batch) {
    return Run(*backend_, requests, batch);
  }

  // Log probabilities of the tokens of `ids`, from the second on, as evaluation computes them.
  std::vector<float> InProcess(const std::vector<int32_t>& ids) {
    const H3Config& config = model_->config();
    std::vector<float> scores;
    const auto sink = [&](int64_t first, std::span<const float> logits) {
      for (int64_t r = 0; r * config.padded_vocab_size < std::ssize(logits); ++r) {
        const size_t next = static_cast<size_t>(first + r + 1);
        if (next == ids.size()) return;
        const auto row = logits.subspan(r * config.padded_vocab_size, config.vocab_size);
        scores.push_back(static_cast<float>(row[ids[next]] - cpu::LogSumExp(row)));
      }
    };
    EXPECT_TRUE(Forward(*backend_, *model_, ids, {}, sink).ok());
    return scores;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HybridH3> model_;
};

TEST_F(GeneratorScoresTest, PromptsHaveTheLikelihoodsOfEvaluationBitForBitInAnyBatch) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 70; ++i) {
    const int64_t tokens = i < 3 ? 1 + i : 1 + i * 37 % 150 + (i % 23 == 0 ? 900 : 0);
    requests.push_back({.prompt = RandomIds(tokens, 40, i),
                        .max_tokens = 1 + i % 4,
                        .sampling = {.temperature = i % 2 == 0 ? 0.0f : 1.0f, .seed = i},
                        .likeliest = static_cast<int32_t>(i % 21),
                        .score_prompt = i % 5 != 4});
  }
  std::vector<std::vector<float>> expected;
  for (const GenerationRequest& request : requests) expected.push_back(InProcess(request.prompt));
  for (const int64_t batch : {1, 7, 32}) {
    const std::vector<Answer> answers = Run(requests, batch);
    for (size_t i = 0; i < requests.size(); ++i) {
      if (!requests[i].score_prompt) {
        EXPECT_TRUE(answers[i].prompt.empty());
        continue;
      }
      ASSERT_EQ(answers[i].prompt.size(), requests[i].prompt.size()) << "request " << i;
      EXPECT_TRUE(answers[i].prompt[0].likeliest.empty());
      for (size_t t = 1; t < requests[i].prompt.size(); ++t) {
        const TokenScores& scores = answers[i].prompt[t];
        EXPECT_EQ(Bits(scores.log_probability), Bits(expected[i][t - 1]))
            << "request " << i << ", token " << t << ", batch " << batch;
        EXPECT_EQ(scores.likeliest.size(), static_cast<size_t>(i % 21));
      }
    }
  }
}

TEST_F(GeneratorScoresTest, NewTokensAreTheSameWithAndWithoutScoresAndTheArgmaxIsOneNumber) {
  std::vector<GenerationRequest> plain, scored;
  for (uint32_t i = 0; i < 12; ++i) {
    plain.push_back({.prompt = RandomIds(3 + i * 50, 40, i),
                     .max_tokens = 9,
                     .sampling = {.temperature = i % 2 == 0 ? 0.0f : 1.2f, .seed = i}});
    scored.push_back(plain.back());
    if (i % 3 == 2) continue;
    scored.back().likeliest = 3;
    scored.back().score_prompt = i % 3 == 1;
  }
  const auto without = Run(plain, 5), with = Run(scored, 5);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(with[i].tokens, without[i].tokens);
    EXPECT_TRUE(without[i].scores.empty());
    if (i % 3 == 2) {
      EXPECT_TRUE(with[i].scores.empty());
      continue;
    }
    ASSERT_EQ(with[i].scores.size(), with[i].tokens.size());
    for (size_t t = 0; t < with[i].tokens.size(); ++t) {
      const TokenScores& scores = with[i].scores[t];
      EXPECT_GE(scores.likeliest[0].log_probability, scores.likeliest[1].log_probability);
      EXPECT_GE(scores.likeliest[1].log_probability, scores.likeliest[2].log_probability);
      if (i % 2 != 0) continue;
      EXPECT_EQ(scores.likeliest[0].token, with[i].tokens[t]);
      EXPECT_EQ(Bits(scores.likeliest[0].log_probability), Bits(scores.log_probability));
    }
  }
}

// What a greedy sequence chooses with its penalties, in double, from the logits of evaluation.
std::vector<double> Penalized(const std::vector<float>& logits, const GenerationRequest& request,
                              const std::vector<int32_t>& fresh) {
  std::vector<double> values(logits.begin(), logits.end());
  const LogitChanges& p = request.changes;
  for (size_t v = 0; v < values.size(); ++v) {
    const auto token = static_cast<int32_t>(v);
    const auto count = std::count(fresh.begin(), fresh.end(), token);
    const bool seen =
        count > 0 || std::count(request.prompt.begin(), request.prompt.end(), token) > 0;
    if (seen)
      values[v] =
          values[v] > 0 ? values[v] / p.repetition_penalty : values[v] * p.repetition_penalty;
    values[v] -=
        (count > 0 ? p.presence_penalty : 0) + p.frequency_penalty * static_cast<double>(count);
    for (const TokenBias& b : p.bias) {
      if (b.token == token) values[v] += b.bias;
    }
  }
  return values;
}

TEST_F(GeneratorScoresTest, PenaltiesAndBiasesAreThoseOfTheirFormula) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 20; ++i) {
    requests.push_back({.prompt = RandomIds(4 + i * 3, 40, i),
                        .max_tokens = 20,
                        .sampling = {.temperature = 0},
                        .ignore_eos = true});
    LogitChanges& p = requests.back().changes;
    if (i % 2 == 0) p.repetition_penalty = 1 + static_cast<float>(i) / 10;
    if (i % 3 == 0) p.presence_penalty = 1.5f;
    if (i % 5 == 0) p.frequency_penalty = 0.7f;
    if (i % 7 == 0) p.bias = {{2, 1.5f}, {5, -3}};
  }
  int penalized = 0;
  const auto answers = Run(requests, 6);
  for (size_t i = 0; i < requests.size(); ++i) {
    std::vector<int32_t> ids = requests[i].prompt, fresh;
    for (const int32_t token : answers[i].tokens) {
      std::vector<float> last;
      const auto keep = [&](int64_t, std::span<const float> logits) {
        last.assign(logits.end() - 48, logits.end() - 8);
      };
      ASSERT_TRUE(Forward(*backend_, *model_, ids, {}, keep).ok());
      const std::vector<double> values = Penalized(last, requests[i], fresh);
      const double best = *std::max_element(values.begin(), values.end());
      // Steps and prefill differ in their last bits.
      EXPECT_GE(values[token], best - 1e-3) << "request " << i << ", token " << fresh.size();
      penalized += last[token] < *std::max_element(last.begin(), last.end());
      ids.push_back(token);
      fresh.push_back(token);
    }
    EXPECT_EQ(fresh.size(), 20u);
  }
  EXPECT_GT(penalized, 50);  // choices that would have been others
}

TEST_F(GeneratorScoresTest, BiasesOfAHundredForceAndBanBesideOthersThatStayTheSame) {
  std::vector<GenerationRequest> requests, plain;
  for (uint32_t i = 0; i < 9; ++i) {
    plain.push_back({.prompt = RandomIds(10, 40, i),
                     .max_tokens = 12,
                     .sampling = {.temperature = 1, .seed = i},
                     .ignore_eos = true});
    requests.push_back(plain.back());
    if (i % 3 == 1) requests.back().changes.bias = {{17, 100}};
    if (i % 3 == 2) {
      for (int32_t t = 0; t < 38; ++t) requests.back().changes.bias.push_back({t, -100});
    }
    requests.back().likeliest = 0;
  }
  const auto answers = Run(requests, 9), without = Run(plain, 9);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i % 3 == 0) {
      EXPECT_EQ(answers[i].tokens, without[i].tokens);
    } else if (i % 3 == 1) {
      EXPECT_EQ(answers[i].tokens, std::vector<int32_t>(12, 17));
      // Of the raw logits: what is forced need not be likely.
      EXPECT_LT(answers[i].scores[0].log_probability, -0.01f);
    } else {
      for (const int32_t token : answers[i].tokens) EXPECT_GE(token, 38);
    }
  }
}

// Counts what a step uploads, and the operations of log probabilities.
class CountingBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void UploadIndices(std::span<const int32_t> values, Tensor dst) override {
    ++uploads;
    uploaded += std::ssize(values);
    ForwardingBackend::UploadIndices(values, dst);
  }
  void Sample(Tensor logits, int64_t vocab, Tensor rows, const LogitAdjustments& adjustments,
              Tensor tokens) override {
    adjusted += adjustments.offsets.data != nullptr;
    ForwardingBackend::Sample(logits, vocab, rows, adjustments, tokens);
  }
  void LogProbabilities(Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                        Tensor log_probabilities) override {
    ++scored;
    ForwardingBackend::LogProbabilities(logits, vocab, tokens, likeliest, log_probabilities);
  }
  int uploads = 0, adjusted = 0, scored = 0;
  int64_t uploaded = 0;
};

TEST_F(GeneratorScoresTest, WhatIsNotUsedUploadsAndCallsNothing) {
  const GenerationRequest plain{.prompt = {1, 2, 3}, .max_tokens = 1000, .ignore_eos = true};
  CountingBackend counting(*backend_);
  const auto generator = Generator::Create(counting, *model_, {2, 1 << 24}).value();
  std::vector<TokenEvent> events;
  generator->Admit(plain).value();
  generator->Prefill(Generator::Clock::time_point::max(), events);
  const auto indices_of_a_step = [&] {
    counting.uploads = 0;
    counting.uploaded = 0;
    generator->Step(events);
    EXPECT_EQ(counting.uploads, 1);
    return counting.uploaded;
  };
  const int64_t indices_of_one = indices_of_a_step();
  EXPECT_EQ(counting.adjusted + counting.scored, 0);
  GenerationRequest other = plain;
  other.changes.presence_penalty = 1;
  other.likeliest = 2;
  const SequenceId id = generator->Admit(other).value();
  generator->Prefill(Generator::Clock::time_point::max(), events);
  EXPECT_GT(indices_of_a_step(), indices_of_one);
  EXPECT_GT(counting.adjusted, 0);
  EXPECT_GT(counting.scored, 0);
  generator->Release(id);
  const int calls = counting.adjusted + counting.scored;
  EXPECT_EQ(indices_of_a_step(), indices_of_one);
  EXPECT_EQ(counting.adjusted + counting.scored, calls);
}

// Makes the logits of some calls no numbers.
class SpoilingBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void Sample(Tensor logits, int64_t vocab, Tensor rows, const LogitAdjustments& adjustments,
              Tensor tokens) override {
    if (++calls_ == 4) {
      const float nan = std::numeric_limits<float>::quiet_NaN();
      Upload({&nan, 1}, logits.Rows(0, 1).Cols(7, 1));
    }
    ForwardingBackend::Sample(logits, vocab, rows, adjustments, tokens);
  }

 private:
  int calls_ = 0;
};

TEST_F(GeneratorScoresTest, ASequenceWithoutNumbersEndsAndOthersGoOn) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 3; ++i) {
    requests.push_back({.prompt = RandomIds(5, 40, i), .max_tokens = 10, .ignore_eos = true});
  }
  const auto sound = Run(requests, 3);
  SpoilingBackend spoiling(*backend_);
  const auto answers = Run(spoiling, requests, 3);
  EXPECT_EQ(answers[0].finish, FinishReason::kFailed);
  EXPECT_LT(answers[0].tokens.size(), 10u);
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(answers[i].finish, FinishReason::kLength);
    EXPECT_EQ(answers[i].tokens, sound[i].tokens);
  }
}

TEST_F(GeneratorScoresTest, RefusesWhatIsOutOfRange) {
  const auto generator = Generator::Create(*backend_, *model_, {1, 1 << 22}).value();
  const GenerationRequest good{.prompt = {1}};
  const auto fault = [&](const auto& change) {
    GenerationRequest request = good;
    change(request);
    return Field(generator->Validate(request));
  };
  using R = GenerationRequest;
  EXPECT_EQ(fault([](R& r) { r.changes.bias = {{40, 1}}; }), "logit_bias");
  EXPECT_EQ(fault([](R& r) { r.changes.bias = {{-1, 1}}; }), "logit_bias");
  EXPECT_EQ(fault([](R& r) { r.changes.bias = {{3, 1}, {3, 1}}; }), "logit_bias");
  EXPECT_EQ(fault([](R& r) { r.changes.bias = {{3, 101}}; }), "logit_bias");
  EXPECT_EQ(fault([](R& r) { r.changes.repetition_penalty = 0; }), "repetition_penalty");
  EXPECT_EQ(fault([](R& r) { r.changes.presence_penalty = std::nanf(""); }), "presence_penalty");
  EXPECT_EQ(fault([](R& r) { r.changes.frequency_penalty = -2.1f; }), "frequency_penalty");
  EXPECT_EQ(fault([](R& r) { r.likeliest = 21; }), "logprobs");
}

}  // namespace
}  // namespace hippodrome::generator_scores_test
