// States of each recurrent mixer as values: saved, written, read, gone on from, forked, and kept in
// the tree of prefixes, with the bits of one piece.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/state/state_file.h"
#include "kernels/make_backend.h"
#include "tests/testing/initial_model.h"
#include "tests/testing/random_model.h"

namespace hippodrome::mixer_states_test {
namespace {

// Tokens and the log probabilities beside them, which show every bit that logits differ in.
struct Answer {
  std::vector<int32_t> tokens;
  std::vector<float> scores;

  bool operator==(const Answer&) const = default;
  void Add(const TokenEvent& event) {
    tokens.push_back(event.token);
    for (const LikelyToken& likely : event.scores->likeliest) {
      tokens.push_back(likely.token);
      scores.push_back(likely.log_probability);
    }
  }
  void Append(const Answer& rest) {
    tokens.insert(tokens.end(), rest.tokens.begin(), rest.tokens.end());
    scores.insert(scores.end(), rest.scores.begin(), rest.scores.end());
  }
};

GenerationRequest Request(std::vector<int32_t> prompt, int64_t max_tokens, uint32_t seed) {
  return {.prompt = std::move(prompt),
          .max_tokens = max_tokens,
          .sampling = {.temperature = seed % 2 == 0 ? 0.0f : 1.1f, .seed = seed},
          .ignore_eos = true,
          .likeliest = 3};
}

class MixerStatesTest : public testing::TestWithParam<DecoderMixer> {
 protected:
  MixerStatesTest() : config_(TinyMixerConfig(GetParam())) {
    const auto parameters = InitialWeights(config_, {.initializer_range = 0.5});
    InitialSource source(*parameters);
    model_ = HybridH3::Load(*backend_, config_, source, DType::kF32).value();
  }

  std::vector<int32_t> Ids(int64_t count, uint32_t seed) const {
    return RandomIds(count, config_.vocab_size, seed);
  }

  std::unique_ptr<Generator> NewGenerator(int64_t prefix_slots = 0) {
    return Generator::Create(*backend_, *model_,
                             {.max_sequences = 4,
                              .key_value_bytes = 1 << 22,
                              .prefix_slots = prefix_slots,
                              .prefix_interval = 64})
        .value();
  }

  // Runs all to the end, together.
  static std::vector<Answer> RunAll(Generator& generator,
                                    const std::vector<GenerationRequest>& requests,
                                    SavedState* saved = nullptr) {
    std::map<SequenceId, size_t> index;
    for (size_t i = 0; i < requests.size(); ++i) index[generator.Admit(requests[i]).value()] = i;
    std::vector<TokenEvent> events;
    while (generator.prefilling()) generator.Prefill(Generator::Clock::time_point::min(), events);
    while (generator.decoding() > 0) generator.Step(events);
    std::vector<Answer> answers(requests.size());
    for (const TokenEvent& event : events) answers[index.at(event.sequence)].Add(event);
    for (const auto& [id, i] : index) {
      if (i == 0 && saved != nullptr) *saved = generator.Save(id).value();
      generator.Release(id);
    }
    return answers;
  }
  Answer Run(const GenerationRequest& request, SavedState* saved = nullptr) {
    return RunAll(*NewGenerator(), {request}, saved)[0];
  }

  // `saved`, through the bytes of its file.
  std::shared_ptr<const SavedState> Travel(const SavedState& saved) {
    const StateLayout layout = NewGenerator()->state_layout();
    const auto bytes = WriteStateFile(saved, layout);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    auto read = ReadStateFile(*bytes, layout);
    EXPECT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, saved);
    return std::make_shared<const SavedState>(*std::move(read));
  }

  const H3Config config_;
  std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 2});
  std::unique_ptr<HybridH3> model_;
};

INSTANTIATE_TEST_SUITE_P(Mixers, MixerStatesTest,
                         testing::Values(DecoderMixer::kH3, DecoderMixer::kS4d, DecoderMixer::kS4,
                                         DecoderMixer::kGss, DecoderMixer::kLinearAttention),
                         [](const auto& info) { return Name(info.param); });

TEST_P(MixerStatesTest, GoesOnFromItsFileAsIfItHadNeverStopped) {
  for (const int64_t prompt : {1, 7, 64, 130, 300}) {
    for (const int64_t cut : {1, 2, 9}) {
      GenerationRequest request = Request(Ids(prompt, 3), 20, static_cast<uint32_t>(cut));
      const Answer whole = Run(request);
      request.max_tokens = cut;
      SavedState saved;
      Answer answer = Run(request, &saved);
      EXPECT_EQ(saved.position, prompt + cut - 1);
      request.prompt = {};
      request.max_tokens = 20 - cut;
      request.start = Travel(saved);
      answer.Append(Run(request));
      EXPECT_EQ(answer, whole) << "prompt " << prompt << ", cut after " << cut;
    }
  }
}

TEST_P(MixerStatesTest, ForksGoOnAsOneAlone) {
  SavedState saved;
  Run(Request(Ids(50, 4), 5, 1), &saved);
  const auto start = Travel(saved);
  std::vector<GenerationRequest> forks;
  for (uint32_t i = 0; i < 4; ++i) {
    forks.push_back(Request(Ids(i / 2 * 9, 5), 12, i));  // two without a prompt of their own
    forks.back().start = start;
  }
  const std::vector<Answer> answers = RunAll(*NewGenerator(), forks);
  for (size_t i = 0; i < forks.size(); ++i) EXPECT_EQ(answers[i], Run(forks[i])) << i;
  EXPECT_NE(answers[0], answers[1]);
}

TEST_P(MixerStatesTest, HitsInTheTreeChangeNoBit) {
  const auto generator = NewGenerator(8);
  for (const int64_t size : {40, 200, 300}) {
    const auto shared = Ids(size, static_cast<uint32_t>(size));
    std::vector<GenerationRequest> requests;
    for (uint32_t i = 0; i < 3; ++i) {
      std::vector<int32_t> prompt = shared;
      const auto rest = Ids(1 + 20 * i, 6 + i);
      prompt.insert(prompt.end(), rest.begin(), rest.end());
      requests.push_back(Request(prompt, 6, i));
    }
    RunAll(*generator, {requests[0]});
    const int64_t hits = generator->prefixes().hits;
    const std::vector<Answer> answers = RunAll(*generator, requests);
    EXPECT_GE(generator->prefixes().hits, hits + 3) << size;
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(answers[i], Run(requests[i])) << i;
  }
}

}  // namespace
}  // namespace hippodrome::mixer_states_test
