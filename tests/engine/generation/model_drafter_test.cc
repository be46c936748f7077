#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/generation/drafter.h"
#include "engine/generator.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::model_drafter_test {
namespace {

constexpr auto kForever = Generator::Clock::time_point::max();

GenerationRequest Request(uint32_t seed) {
  GenerationRequest request{.prompt = RandomIds(5 + 90 * (seed % 4), 40, seed),
                            .max_tokens = 60,
                            .sampling = {.temperature = 0.6f * (seed % 2), .seed = seed},
                            .ignore_eos = true};
  request.changes.frequency_penalty = seed % 3 == 0 ? 0.1f : 0.0f;
  return request;
}

class ModelDrafterTest : public testing::Test {
 protected:
  ModelDrafterTest()
      : backend_(MakeCpuBackend({.threads = 2})), draft_(MakeTestModel(*backend_, TinyConfig())) {
    H3Config config = TinyConfig();
    config.n_layer = 60;
    large_ = MakeTestModel(*backend_, config);
  }

  // For a model beside which it costs little.
  std::unique_ptr<Drafter> NewDrafter(int64_t max_sequences = 8) {
    return MakeModelDrafter(*backend_, *draft_, *large_,
                            {.max_sequences = max_sequences, .key_value_bytes = 1 << 22})
        .value();
  }

  // What the draft model makes of a request itself.
  std::vector<int32_t> Text(const GenerationRequest& request) {
    const auto generator = Generator::Create(*backend_, *draft_, {1, 1 << 22}).value();
    EXPECT_TRUE(generator->Admit(request).ok());
    std::vector<TokenEvent> events;
    generator->Prefill(kForever, events);
    while (generator->decoding() > 0) generator->Step(events);
    std::vector<int32_t> tokens;
    for (const TokenEvent& event : events) tokens.push_back(event.token);
    return tokens;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HybridH3> draft_;
  std::unique_ptr<HybridH3> large_;
};

// A sequence after `count` tokens of `text`, as the generator has it.
Sequence SequenceAfter(const GenerationRequest& request, const std::vector<int32_t>& text,
                       int64_t count) {
  Sequence s(request, {});
  for (int64_t i = 0; i < count; ++i) s.Append(text[i]);
  s.generated = count;
  s.position = s.length() - 1;
  s.decoding = true;
  return s;
}

// Seeds, positions and penalties are those of the sequence, and guesses that did not come true are
// forgotten: those that are wanted after fewer tokens than were guessed are the same.
TEST_F(ModelDrafterTest, GuessesWhatItWouldSayItself) {
  const auto drafter = NewDrafter();
  std::vector<GenerationRequest> requests;
  std::vector<std::vector<int32_t>> texts;
  for (uint32_t i = 0; i < 8; ++i) {
    requests.push_back(Request(i));
    texts.push_back(Text(requests.back()));
  }
  for (int64_t count = 1; count < 50; count += 1 + count % 3) {
    std::vector<Sequence> sequences;
    std::vector<DraftWish> wishes;
    for (size_t i = 0; i < requests.size(); ++i) {
      sequences.push_back(SequenceAfter(requests[i], texts[i], count));
    }
    for (size_t i = 0; i < sequences.size(); ++i) {
      const int64_t most = 7 - sequences[i].position % 8;
      wishes.push_back(
          {.id = static_cast<SequenceId>(i + 1), .sequence = &sequences[i], .most = most});
      for (int j = 0; j < 40; ++j) sequences[i].draft_length.Learn(DraftBasis::kModel, 7, 7);
    }
    const std::vector<TokenDraft> drafts = drafter->Draft(wishes);
    ASSERT_EQ(drafts.size(), wishes.size());
    for (size_t i = 0; i < drafts.size(); ++i) {
      const auto from = texts[i].begin() + count;
      EXPECT_EQ(drafts[i].tokens, std::vector<int32_t>(from, from + wishes[i].most))
          << "sequence " << i << " after " << count;
      EXPECT_EQ(drafts[i].basis, DraftBasis::kModel);
    }
  }
}

// What it guessed and the sequence then did not say is not taken for its text, however many tokens
// it was not asked behind.
TEST_F(ModelDrafterTest, GuessesThatDidNotComeTrueAreForgotten) {
  GenerationRequest request = Request(5);
  std::vector<int32_t> text = Text(request);
  for (const int64_t later : {1, 2, 3, 6, 9, 20}) {
    const auto drafter = NewDrafter();
    const auto draft = [&](Drafter& asked, const Sequence& s) {
      const DraftWish wish{
          .id = 1, .sequence = &s, .most = std::max<int64_t>(1, 7 - s.position % 8)};
      return asked.Draft({&wish, 1}).front().tokens;
    };
    int64_t count = 1;
    while (SequenceAfter(request, text, count).position % 8 != 0) ++count;
    EXPECT_GT(draft(*drafter, SequenceAfter(request, text, count)).size(), 1);
    std::vector<int32_t> other = text;
    for (size_t i = count + 1; i < other.size(); ++i) other[i] = (other[i] + 1) % 40;
    const Sequence s = SequenceAfter(request, other, count + later);
    EXPECT_EQ(draft(*drafter, s), draft(*NewDrafter(), s)) << later << " later";
  }
}

TEST_F(ModelDrafterTest, ASequenceWithoutRoomHasNoDrafts) {
  const auto drafter = NewDrafter(1);
  const GenerationRequest request = Request(4);
  const std::vector<int32_t> text = Text(request);
  const Sequence s = SequenceAfter(request, text, 2);
  const auto drafted = [&](SequenceId id) {
    const DraftWish wish{.id = id, .sequence = &s, .most = 2};
    return std::ssize(drafter->Draft({&wish, 1}).front().tokens);
  };
  EXPECT_GT(drafted(1), 0);
  EXPECT_EQ(drafted(2), 0);
  drafter->Release(1);
  drafter->Release(1);  // unknown by now
  EXPECT_GT(drafted(2), 0);
}

TEST_F(ModelDrafterTest, TokensThatAreForgottenCannotBeTakenIn) {
  const auto drafter = NewDrafter();
  const GenerationRequest request = Request(4);
  Sequence s = SequenceAfter(request, Text(request), 20);
  s.first = 10;
  s.tokens.erase(s.tokens.begin(), s.tokens.begin() + 10);
  const DraftWish wish{.id = 1, .sequence = &s, .most = 2};
  EXPECT_TRUE(drafter->Draft({&wish, 1}).front().tokens.empty());
}

}  // namespace
}  // namespace hippodrome::model_drafter_test
