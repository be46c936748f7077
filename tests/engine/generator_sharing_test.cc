// Prompts that are taken in once for many: shared while they run, and kept in the tree of prefixes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::generator_sharing_test {
namespace {

constexpr auto kForever = Generator::Clock::time_point::max();
constexpr auto kAtOnce = Generator::Clock::time_point::min();

// Tokens and the log probabilities beside them, which show every bit that logits differ in.
struct Answer {
  std::vector<int32_t> tokens;
  std::vector<float> scores;
  std::vector<float> prompt_scores;

  bool operator==(const Answer&) const = default;
  void Add(const TokenEvent& event) {
    tokens.push_back(event.token);
    for (const TokenScores& s : event.prompt_scores) prompt_scores.push_back(s.log_probability);
    if (!event.scores) return;
    for (const LikelyToken& likely : event.scores->likeliest) {
      tokens.push_back(likely.token);
      scores.push_back(likely.log_probability);
    }
  }
};

GenerationRequest Request(std::vector<int32_t> prompt, int64_t max_tokens, uint32_t seed) {
  return {.prompt = std::move(prompt),
          .max_tokens = max_tokens,
          .sampling = {.temperature = seed % 2 == 0 ? 0.0f : 1.2f, .seed = seed},
          .ignore_eos = true,
          .likeliest = 2};
}

std::vector<int32_t> Join(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Case {
  DType weights;
  int threads;
};

class GeneratorSharingTest : public testing::TestWithParam<Case> {
 protected:
  GeneratorSharingTest()
      : backend_(MakeCpuBackend({.threads = GetParam().threads})),
        model_(MakeTestModel(*backend_, TinyConfig(), GetParam().weights)) {}

  std::unique_ptr<Generator> NewGenerator(int64_t prefix_slots, int64_t max_sequences = 8,
                                          int64_t interval = 512) {
    return Generator::Create(*backend_, *model_,
                             {.max_sequences = max_sequences,
                              .key_value_bytes = 1 << 22,
                              .prefix_slots = prefix_slots,
                              .prefix_interval = interval})
        .value();
  }

  // Runs to the end what was admitted.
  static std::map<SequenceId, Answer> Finish(Generator& generator) {
    std::map<SequenceId, Answer> answers;
    std::vector<TokenEvent> events;
    while (generator.prefilling() || generator.decoding() > 0) {
      generator.Prefill(kAtOnce, events);
      generator.Step(events);
    }
    for (const TokenEvent& event : events) answers[event.sequence].Add(event);
    return answers;
  }

  Answer Run(Generator& generator, const GenerationRequest& request) {
    const SequenceId id = generator.Admit(request).value();
    Answer answer = Finish(generator)[id];
    cached_ = generator.Cached(id);
    generator.Release(id);
    return answer;
  }
  // With nothing beside it, and nothing before.
  Answer Alone(const GenerationRequest& request) { return Run(*NewGenerator(0, 1), request); }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HybridH3> model_;
  int64_t cached_ = 0;  // of the last Run()
};

TEST_P(GeneratorSharingTest, OnePrefillServesAllThatAskForIt) {
  const auto prompt = RandomIds(600, 40, 1);
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 5; ++i) requests.push_back(Request(prompt, 1 + 4 * i, i));
  requests[2].score_prompt = true;
  requests[4].score_prompt = true;
  requests[3].cache_salt = "another";
  const auto generator = NewGenerator(0);
  std::vector<SequenceId> ids;
  std::vector<TokenEvent> events;
  for (const GenerationRequest& request : requests) {
    ids.push_back(generator->Admit(request).value());
    generator->Prefill(kAtOnce, events);  // they come while the first is on its way
  }
  ASSERT_TRUE(events.empty());
  EXPECT_EQ(generator->used().slots, 5);
  auto answers = Finish(*generator);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(answers[ids[i]], Alone(requests[i])) << "request " << i;
  }
  EXPECT_EQ(generator->Cached(ids[0]), 0);
  EXPECT_EQ(generator->Cached(ids[1]), 600);
  EXPECT_EQ(generator->Cached(ids[2]), 0);  // the first is not scored
  EXPECT_EQ(generator->Cached(ids[3]), 0);  // not its salt
  EXPECT_EQ(generator->Cached(ids[4]), 600);
  // Nine full pages are there once for the first two, and once for the two that are scored.
  int64_t reserved = 0;
  for (const GenerationRequest& r : requests) reserved += generator->Cost(600, r.max_tokens).pages;
  EXPECT_EQ(generator->used().pages, reserved);
  EXPECT_EQ(generator->held().pages, reserved - 2 * 9);
  for (const SequenceId id : ids) generator->Release(id);
  EXPECT_EQ(generator->used().bytes, 0);
  EXPECT_EQ(generator->held().bytes, 0);
}

// Choices behind a context: each as if nobody else were there, and the whole prompt were scored.
class Choices {
 public:
  Choices(int64_t context, int64_t count, uint32_t seed) : context_(context) {
    const std::vector<int32_t> begin = RandomIds(context, 40, seed);
    for (int64_t i = 0; i < count; ++i) {
      const auto more = RandomIds(1 + 3 * i, 40, seed + 1 + static_cast<uint32_t>(i));
      GenerationRequest request = Request(Join(begin, more), 1, 2);
      request.score_prompt = true;
      request.score_from = context;
      request.shared_tokens = context;
      requests_.push_back(std::move(request));
    }
  }

  std::vector<GenerationRequest>& requests() { return requests_; }
  // What the same request gives that shares nothing and is scored from its first token.
  static GenerationRequest Plain(GenerationRequest request) {
    request.score_from = request.shared_tokens = 0;
    return request;
  }
  Answer Expected(Answer plain) const {
    plain.prompt_scores.erase(plain.prompt_scores.begin(), plain.prompt_scores.begin() + context_);
    return plain;
  }

 private:
  int64_t context_;
  std::vector<GenerationRequest> requests_;
};

TEST_P(GeneratorSharingTest, ChoicesTakeTheirContextInOnce) {
  for (const int64_t context : {1, 7, 16, 100, 225, 255, 256, 300, 320, 700, 1024}) {
    Choices choices(context, 6, static_cast<uint32_t>(context));
    const auto generator = NewGenerator(0);
    std::vector<SequenceId> ids;
    std::vector<TokenEvent> events;
    for (const GenerationRequest& request : choices.requests()) {
      ids.push_back(generator->Admit(request).value());
      if (ids.size() == 1) generator->Prefill(kAtOnce, events);  // it is on its way
    }
    auto answers = Finish(*generator);
    for (const TokenEvent& event : events) answers[event.sequence].Add(event);
    for (size_t i = 0; i < ids.size(); ++i) {
      const GenerationRequest& request = choices.requests()[i];
      EXPECT_EQ(answers[ids[i]], choices.Expected(Alone(Choices::Plain(request))))
          << "context " << context << ", choice " << i;
      // Not where the transform of the first tokens would have to be cut.
      const bool shares = context >= 256 || (context >= 8 && std::ssize(request.prompt) < 256);
      const int64_t cached = i > 0 && shares ? context / 8 * 8 : 0;
      EXPECT_EQ(generator->Cached(ids[i]), cached) << "context " << context << ", choice " << i;
    }
    for (const SequenceId id : ids) generator->Release(id);
    EXPECT_EQ(generator->held().bytes, 0);
  }
}

TEST_P(GeneratorSharingTest, OneThatWaitsTakesThePlaceOfTheFirstChoice) {
  for (const int64_t turns : {0, 1, 3, 4, 5, 6, 8}) {  // layers that ran before the first one goes
    Choices choices(520, 4, 3);
    choices.requests()[2].cache_salt = "another";  // waits for nobody
    const auto generator = NewGenerator(0);
    std::vector<SequenceId> ids;
    for (const GenerationRequest& r : choices.requests()) {
      ids.push_back(generator->Admit(r).value());
    }
    // One with the same prompt follows the first, and goes before it.
    const SequenceId twin = generator->Admit(choices.requests()[0]).value();
    std::vector<TokenEvent> events;
    for (int64_t i = 0; i < turns; ++i) generator->Prefill(kAtOnce, events);
    if (turns % 2 == 1) {
      generator->Release(ids[0]);
      generator->Release(twin);
    } else {
      generator->Release(twin);
      generator->Release(ids[0]);
    }
    auto answers = Finish(*generator);
    for (const TokenEvent& event : events) answers[event.sequence].Add(event);
    for (size_t i = 1; i < ids.size(); ++i) {
      EXPECT_EQ(answers[ids[i]], choices.Expected(Alone(Choices::Plain(choices.requests()[i]))))
          << turns << " turns, choice " << i;
      generator->Release(ids[i]);
    }
    EXPECT_EQ(generator->held().bytes, 0);
  }
}

TEST_P(GeneratorSharingTest, ScoredPromptsBeginWithWhatTheTreeHas) {
  for (const int64_t context : {100, 264, 600}) {
    Choices choices(context, 3, 5);
    const auto generator = NewGenerator(8);
    for (GenerationRequest& request : choices.requests()) {
      request.cache_marks = {context - 1};
      EXPECT_EQ(Run(*generator, request), choices.Expected(Alone(Choices::Plain(request))));
      const bool first = &request == choices.requests().data();
      EXPECT_EQ(cached_, first ? 0 : (context - 1) / 8 * 8) << context;
    }
    // Those that come together as well: the first one finds what the others wait for.
    std::vector<SequenceId> ids;
    for (const GenerationRequest& r : choices.requests()) {
      ids.push_back(generator->Admit(r).value());
    }
    auto answers = Finish(*generator);
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(answers[ids[i]], choices.Expected(Alone(Choices::Plain(choices.requests()[i]))));
      EXPECT_GE(generator->Cached(ids[i]), (context - 1) / 8 * 8);
    }
  }
}

TEST_P(GeneratorSharingTest, AFollowerTakesTheLeadersPlace) {
  const auto prompt = RandomIds(700, 40, 2);
  for (const int64_t turns : {0, 1, 3, 4, 6}) {  // layers that ran before the leader goes
    const auto generator = NewGenerator(0);
    std::vector<GenerationRequest> requests;
    for (uint32_t i = 0; i < 4; ++i) requests.push_back(Request(prompt, 3 + 70 * (i % 3), i));
    requests[0].score_prompt = requests[2].score_prompt = true;
    std::vector<SequenceId> ids;
    for (const GenerationRequest& r : requests) ids.push_back(generator->Admit(r).value());
    std::vector<TokenEvent> events;
    for (int64_t i = 0; i < turns; ++i) generator->Prefill(kAtOnce, events);
    ASSERT_TRUE(events.empty());
    generator->Release(ids[0]);
    EXPECT_TRUE(generator->prefilling());
    generator->Release(ids[3]);
    auto answers = Finish(*generator);
    EXPECT_EQ(answers[ids[1]], Alone(requests[1])) << turns;
    EXPECT_EQ(answers[ids[2]], Alone(requests[2])) << turns;
    EXPECT_EQ(generator->Cached(ids[1]), 700);
    generator->Release(ids[1]);
    generator->Release(ids[2]);
    EXPECT_EQ(generator->held().bytes, 0);
  }
}

TEST_P(GeneratorSharingTest, AnExtendedPromptRepeatsAtMostABlock) {
  for (const int64_t size : {9, 40, 200, 255, 256, 300, 513, 700}) {
    const auto generator = NewGenerator(8);
    const GenerationRequest first = Request(RandomIds(size, 40, 3), 5, 1);
    EXPECT_EQ(Run(*generator, first), Alone(first)) << size;
    EXPECT_EQ(cached_, 0);
    const int64_t last = (size - 1) / 8 * 8;
    EXPECT_EQ(Run(*generator, first), Alone(first)) << size;
    EXPECT_EQ(cached_, size == 256 ? 0 : last) << size;  // none before 256 of 256 tokens
    const GenerationRequest more = Request(Join(first.prompt, RandomIds(50, 40, 4)), 5, 1);
    EXPECT_EQ(Run(*generator, more), Alone(more)) << size;
    const bool canonical = size > 256 || size + 50 < 256;
    EXPECT_EQ(cached_, canonical ? last : 0) << size;
    EXPECT_EQ(generator->prefixes().misses, canonical ? 1 : size == 256 ? 3 : 2);
  }
}

TEST_P(GeneratorSharingTest, TheThirdPromptFindsWhereTwoBranched) {
  const auto shared = RandomIds(333, 40, 5);
  const auto generator = NewGenerator(8);
  for (uint32_t i = 0; i < 4; ++i) {
    const auto request =
        Request(Join(shared, Join({static_cast<int32_t>(i)}, RandomIds(60, 40, i))), 4, i);
    EXPECT_EQ(Run(*generator, request), Alone(request));
    EXPECT_EQ(cached_, i < 2 ? 0 : 328) << i;
  }
  EXPECT_EQ(generator->prefixes().hits, 2);
  EXPECT_EQ(generator->prefixes().hit_tokens, 2 * 328);
}

TEST_P(GeneratorSharingTest, KeepsAtMarksAndIntervals) {
  const auto prompt = RandomIds(1200, 40, 6);
  const auto generator = NewGenerator(8);
  GenerationRequest first = Request(prompt, 2, 1);
  first.cache_marks = {700, 100};
  EXPECT_EQ(Run(*generator, first), Alone(first));
  const auto hit = [&](int64_t common) {
    const std::vector<int32_t> begin(prompt.begin(), prompt.begin() + common);
    GenerationRequest request = Request(Join(begin, {39, 38, 37}), 2, 1);
    request.prompt[common] = (prompt[common] + 1) % 40;
    EXPECT_EQ(Run(*generator, request), Alone(request));
    return cached_;
  };
  EXPECT_EQ(hit(1100), 1024);
  EXPECT_EQ(hit(900), 696);
  EXPECT_EQ(hit(600), 512);
  EXPECT_EQ(hit(500), 0);  // the mark before 256 is not kept
  EXPECT_TRUE(absl::IsInvalidArgument(generator->Validate({.prompt = {1}, .cache_marks = {2}})));
  EXPECT_EQ(Field(generator->Validate({.prompt = {1}, .cache_marks = {0}})), "cache_marks");
  EXPECT_EQ(Field(generator->Validate({.prompt = {1, 2}, .score_from = 2})), "score_from");
  EXPECT_EQ(Field(generator->Validate(
                {.prompt = {1, 2, 3}, .score_prompt = true, .score_from = 1, .shared_tokens = 2})),
            "shared_tokens");
}

TEST_P(GeneratorSharingTest, OtherSaltsAndThoseWhoDoNotWantItFindNothing) {
  const auto generator = NewGenerator(8);
  GenerationRequest request = Request(RandomIds(400, 40, 7), 3, 1);
  request.cache_prompt = false;
  Run(*generator, request);
  EXPECT_EQ(generator->prefixes().nodes, 0);
  request.cache_prompt = true;
  request.cache_salt = "a";
  Run(*generator, request);
  EXPECT_EQ(generator->prefixes().nodes, 1);
  request.cache_salt = "b";
  Run(*generator, request);
  EXPECT_EQ(cached_, 0);
  request.score_prompt = true;
  EXPECT_EQ(Run(*generator, request), Alone(request));
  EXPECT_EQ(cached_, 0);
  request.score_prompt = false;
  request.cache_prompt = false;
  Run(*generator, request);
  EXPECT_EQ(cached_, 0);
  request.cache_prompt = true;
  Run(*generator, request);
  EXPECT_EQ(cached_, 392);
}

TEST_P(GeneratorSharingTest, SequencesComeBeforeTheTree) {
  const auto generator = NewGenerator(4);
  const int64_t pages = generator->capacity().pages;
  const GenerationRequest first = Request(RandomIds(600, 40, 8), 3, 1);
  Run(*generator, first);
  EXPECT_EQ(generator->prefixes().nodes, 2);  // 512, 592
  EXPECT_EQ(generator->used().bytes, 0);      // free for sequences
  EXPECT_EQ(generator->held().pages, 10);
  EXPECT_EQ(generator->prefixes().bytes, generator->held().bytes);  // shared pages once
  GenerationRequest all = Request(RandomIds(20, 40, 9), pages * 64 - 19, 1);
  all.cache_prompt = false;
  const SequenceId id = generator->Admit(all).value();
  std::vector<TokenEvent> events;
  generator->Prefill(kForever, events);
  EXPECT_EQ(generator->prefixes().nodes, 0);
  EXPECT_EQ(generator->prefixes().evictions, 2);
  EXPECT_EQ(generator->prefixes().bytes, 0);
  generator->Release(id);
  // What fills all of the room can begin with nothing that the tree holds.
  Run(*generator, first);
  all.cache_prompt = true;
  all.prompt = first.prompt;
  all.max_tokens = pages * 64 - 599;
  const SequenceId full = generator->Admit(all).value();
  events.clear();
  generator->Prefill(kForever, events);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].token, Alone(first).tokens[0]);
  generator->Release(full);
  generator->ClearPrefixes();
  EXPECT_EQ(generator->held().bytes, 0);
}

// Prompts that begin alike at all kinds of places, in batches, with few places in the tree.
TEST_P(GeneratorSharingTest, HitsChangeNoBit) {
  std::mt19937 random(11);
  for (const int64_t batch : {1, 3, 8}) {
    const auto generator = NewGenerator(5, batch, 128);
    std::vector<GenerationRequest> requests;
    std::vector<Answer> expected;
    while (std::ssize(requests) < 16) {
      std::vector<int32_t> prompt;
      if (!requests.empty() && random() % 4 != 0) {
        const auto& other = requests[random() % requests.size()].prompt;
        prompt.assign(other.begin(), other.begin() + 1 + random() % other.size());
      }
      const auto more = RandomIds(1 + random() % 300, 40, static_cast<uint32_t>(random()));
      requests.push_back(
          Request(Join(prompt, more), 1 + random() % 6, static_cast<uint32_t>(random())));
      expected.push_back(Alone(requests.back()));
    }
    std::map<SequenceId, size_t> running;
    std::map<SequenceId, Answer> answers;
    for (int64_t turn = 0; turn < 250; ++turn) {
      const size_t request = random() % requests.size();
      if (const auto id = generator->Admit(requests[request]); id.ok()) running[*id] = request;
      if (random() % 8 == 0) {
        const auto victim = std::next(running.begin(), random() % running.size());
        generator->Release(victim->first);
        answers.erase(victim->first);
        running.erase(victim);
      }
      std::vector<TokenEvent> events;
      generator->Prefill(kAtOnce, events);
      generator->Step(events);
      for (const TokenEvent& event : events) {
        answers[event.sequence].Add(event);
        if (event.finish == FinishReason::kNone) continue;
        ASSERT_EQ(answers[event.sequence], expected[running.at(event.sequence)]);
        generator->Release(event.sequence);
        running.erase(event.sequence);
      }
    }
    EXPECT_GT(generator->prefixes().hits, 0);
    EXPECT_GT(generator->prefixes().evictions, 0);
    while (!running.empty()) {
      generator->Release(running.begin()->first);
      running.erase(running.begin());
    }
    generator->ClearPrefixes();
    EXPECT_EQ(generator->held().bytes, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GeneratorSharingTest,
                         testing::Values(Case{DType::kF32, 1}, Case{DType::kF32, 2},
                                         Case{DType::kBF16, 1}, Case{DType::kBF16, 2},
                                         Case{DType::kI8, 2}, Case{DType::kI4, 2}));

}  // namespace
}  // namespace hippodrome::generator_sharing_test
