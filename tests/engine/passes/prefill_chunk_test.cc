#include "engine/passes/prefill_chunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/passes/decode_step.h"
#include "kernels/make_backend.h"
#include "tests/reference/published_state.h"
#include "tests/testing/random_model.h"

namespace hippodrome::prefill_chunk_test {
namespace {

class PrefillChunkTest : public testing::Test {
 protected:
  std::vector<float> LastLogits(PrefillChunk& chunk, int64_t parts = 1) {
    const OwnedTensor logits = backend_->NewTensor(parts, model_->config().padded_vocab_size);
    chunk.LastLogits(logits);
    return Values(logits);
  }
  static void Begin(PrefillChunk& chunk, const std::vector<int32_t>& prompt,
                    const SequenceState& sequence) {
    const PrefillPart part{.tokens = prompt, .sequence = &sequence};
    chunk.Begin({&part, 1});
  }
  std::vector<float> Values(Tensor logits) {
    std::vector<float> values(logits.rows * logits.cols);
    backend_->Download(logits, values);
    return values;
  }

  std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 2});
  std::unique_ptr<HybridH3> model_ = MakeTestModel(*backend_, TinyConfig());
};

TEST_F(PrefillChunkTest, IsCutAtAbsolutePositions) {
  const PrefillChunk chunk(*backend_, *model_);
  EXPECT_TRUE(chunk.done());
  EXPECT_EQ(chunk.grid(), 512);
  EXPECT_EQ(chunk.TokensAt(0, 1100), 512);
  EXPECT_EQ(chunk.TokensAt(512, 1100), 512);
  EXPECT_EQ(chunk.TokensAt(1024, 1100), 76);
  EXPECT_EQ(chunk.TokensAt(500, 1100), 12);  // up to the next multiple of the grid
  EXPECT_EQ(chunk.max_rows(), 512);
}

TEST_F(PrefillChunkTest, AnotherSequenceMayComeBetweenLayers) {
  const auto state = model_->NewState(*backend_, 2, 20, 64);
  const SequenceState a = *state->Reserve(5);
  const SequenceState b = *state->Reserve(5);
  const auto prompt = RandomIds(300, 40, 2);
  const auto other = RandomIds(200, 40, 3);
  PrefillChunk first(*backend_, *model_), second(*backend_, *model_);
  Begin(first, prompt, a);
  Begin(second, other, b);
  while (!first.done()) {
    first.RunLayer(*state);
    second.RunLayer(*state);
  }
  const auto fresh = model_->NewState(*backend_, 1, 20, 64);
  const SequenceState alone = *fresh->Reserve(5);
  PrefillChunk undisturbed(*backend_, *model_);
  Begin(undisturbed, prompt, alone);
  while (!undisturbed.done()) undisturbed.RunLayer(*fresh);
  EXPECT_EQ(LastLogits(first), LastLogits(undisturbed));
}

TEST_F(PrefillChunkTest, TheLastLogitsAreTheLastOfAll) {
  const auto state = model_->NewState(*backend_, 1, 20, 64);
  const SequenceState sequence = *state->Reserve(5);
  PrefillChunk chunk(*backend_, *model_);
  Begin(chunk, RandomIds(33, 40, 4), sequence);
  while (!chunk.done()) chunk.RunLayer(*state);
  const auto last = LastLogits(chunk);
  const OwnedTensor logits = backend_->NewTensor(33, model_->config().padded_vocab_size);
  chunk.AllLogits(logits);
  EXPECT_EQ(last, Values(logits.view.Rows(32, 1)));
}

TEST_F(PrefillChunkTest, PartsTogetherAreThePartsAlone) {
  const auto state = model_->NewState(*backend_, 6, 20, 64);
  std::vector<std::vector<int32_t>> prompts;
  std::vector<SequenceState> together, alone;
  std::vector<PrefillPart> parts;
  for (uint32_t i = 0; i < 3; ++i) {
    prompts.push_back(RandomIds(80, 40, i));
    together.push_back(*state->Reserve(2 + i));
    alone.push_back(*state->Reserve(2));
  }
  for (size_t i = 0; i < 3; ++i) parts.push_back({.tokens = prompts[i], .sequence = &together[i]});
  PrefillChunk chunk(*backend_, *model_);
  std::vector<float> expected;
  for (size_t i = 0; i < 3; ++i) {
    Begin(chunk, prompts[i], alone[i]);
    while (!chunk.done()) chunk.RunLayer(*state);
    const auto logits = LastLogits(chunk);
    expected.insert(expected.end(), logits.begin(), logits.end());
  }
  chunk.Begin(parts);
  while (!chunk.done()) chunk.RunLayer(*state);
  EXPECT_EQ(LastLogits(chunk, 3), expected);
}

// Whole prompts, rests of several starts, and one token, in one pass.
TEST_F(PrefillChunkTest, PartsOfAnyStartAndLengthAreThePartsAlone) {
  const auto state = model_->NewState(*backend_, 8, 40, 64);
  const std::vector<std::pair<int64_t, int64_t>> rests = {{0, 300}, {64, 31}, {13, 1}, {0, 5}};
  std::vector<std::vector<int32_t>> prompts;
  std::vector<SequenceState> together, alone;
  PrefillChunk chunk(*backend_, *model_);
  for (size_t i = 0; i < rests.size(); ++i) {
    const auto [start, tokens] = rests[i];
    prompts.push_back(RandomIds(start + tokens, 40, static_cast<uint32_t>(i)));
    together.push_back(*state->Reserve(5));
    alone.push_back(*state->Reserve(5));
    const std::vector<int32_t> before(prompts[i].begin(), prompts[i].begin() + start);
    for (const SequenceState& sequence : {together[i], alone[i]}) {
      if (start == 0) continue;
      Begin(chunk, before, sequence);
      while (!chunk.done()) chunk.RunLayer(*state);
    }
  }
  const auto part = [&](size_t i, const SequenceState& sequence) {
    return PrefillPart{.tokens = std::span(prompts[i]).subspan(rests[i].first),
                       .start = rests[i].first,
                       .sequence = &sequence};
  };
  std::vector<PrefillPart> parts;
  std::vector<float> expected;
  for (size_t i = 0; i < rests.size(); ++i) {
    parts.push_back(part(i, together[i]));
    const PrefillPart own = part(i, alone[i]);
    chunk.Begin({&own, 1});
    while (!chunk.done()) chunk.RunLayer(*state);
    const auto logits = LastLogits(chunk);
    expected.insert(expected.end(), logits.begin(), logits.end());
  }
  chunk.Begin(parts);
  EXPECT_EQ(chunk.rows(), 337);
  EXPECT_EQ(chunk.FirstRow(2), 331);
  EXPECT_EQ(chunk.TokensOf(1), 31);
  while (!chunk.done()) chunk.RunLayer(*state);
  EXPECT_EQ(LastLogits(chunk, 4), expected);
}

TEST_F(PrefillChunkTest, StepsBesidePartsAreStepsAlone) {
  const auto state = model_->NewState(*backend_, 8, 40, 64);
  PrefillChunk chunk(*backend_, *model_);
  DecodeStep step(*backend_, *model_, *state, 4);
  const std::vector<int64_t> lengths = {3, 70, 300};  // of what steps
  std::vector<SequenceState> beside, alone;
  std::vector<StepToken> besides, alones;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto before = RandomIds(lengths[i], 40, static_cast<uint32_t>(i));
    beside.push_back(*state->Reserve(5));
    alone.push_back(*state->Reserve(5));
    for (const SequenceState& sequence : {beside[i], alone[i]}) {
      Begin(chunk, before, sequence);
      while (!chunk.done()) chunk.RunLayer(*state);
    }
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    besides.push_back({.token = 7, .position = lengths[i], .sequence = &beside[i]});
    alones.push_back({.token = 7, .position = lengths[i], .sequence = &alone[i]});
  }
  const auto prompt = RandomIds(21, 40, 9);
  for (int round = 0; round < 12; ++round) {  // through blocks of the recurrence
    const auto tokens = std::span(prompt).subspan(round, 1 + round % 3);
    SequenceState own = *state->Reserve(1), other = *state->Reserve(1);
    const PrefillPart part = {.tokens = tokens, .sequence = &own};
    const PrefillPart same = {.tokens = tokens, .sequence = &other};
    chunk.Begin({&same, 1});
    while (!chunk.done()) chunk.RunLayer(*state);
    std::vector<float> expected = LastLogits(chunk);
    const std::vector<float> stepped = Values(step.Logits(alones));
    expected.insert(expected.end(), stepped.begin(), stepped.end());
    chunk.Begin({&part, 1}, besides);
    EXPECT_EQ(chunk.rows(), std::ssize(tokens) + 3);
    while (!chunk.done()) chunk.RunLayer(*state);
    ASSERT_EQ(LastLogits(chunk, 4), expected) << "round " << round;
    for (StepToken& token : besides) ++token.position;
    for (StepToken& token : alones) ++token.position;
    state->Release(own);
    state->Release(other);
  }
}

// A state that is copied on the way, with the rows before it, goes on like a prompt that ends
// there.
TEST_F(PrefillChunkTest, CapturesAreStatesOfShorterPrompts) {
  const auto state = model_->NewState(*backend_, 4, 40, 64);
  const auto prompt = RandomIds(320, 40, 7);
  const SequenceState whole = *state->Reserve(5), copy = *state->Reserve(5);
  const SequenceState early = *state->Reserve(0), shorter = *state->Reserve(5);
  const std::vector<PrefillCapture> captures = {{256, early.slot}, {304, copy.slot}};
  PrefillChunk chunk(*backend_, *model_);
  const PrefillPart part = {.tokens = prompt, .sequence = &whole, .captures = captures};
  chunk.Begin({&part, 1});
  while (!chunk.done()) chunk.RunLayer(*state);
  const auto undisturbed = LastLogits(chunk);
  for (const auto& pages : state->layers().attention) {
    if (pages == nullptr) continue;
    for (size_t i = 0; i < 5; ++i) backend_->CopyPage(*pages, whole.pages[i], copy.pages[i]);
  }
  const std::span<const int32_t> rest = std::span(prompt).subspan(304);
  const auto go_on = [&](const SequenceState& sequence) {
    const PrefillPart last = {.tokens = rest, .start = 304, .sequence = &sequence};
    chunk.Begin({&last, 1});
    while (!chunk.done()) chunk.RunLayer(*state);
    return LastLogits(chunk);
  };
  EXPECT_EQ(go_on(copy), undisturbed);
  Begin(chunk, {prompt.begin(), prompt.begin() + 304}, shorter);
  while (!chunk.done()) chunk.RunLayer(*state);
  EXPECT_EQ(go_on(shorter), undisturbed);
}

TEST_F(PrefillChunkTest, WhatADroppedPartWasCopiedToIsNotTouched) {
  const auto state = model_->NewState(*backend_, 3, 20, 64);
  const SequenceState kept = *state->Reserve(2), dropped = *state->Reserve(2);
  const SequenceState copy = *state->Reserve(0);
  const auto prompt = RandomIds(70, 40, 1);
  const std::vector<PrefillCapture> captures = {{64, copy.slot}};
  const PrefillPart parts[] = {{.tokens = prompt, .sequence = &dropped, .captures = captures},
                               {.tokens = prompt, .sequence = &kept}};
  PrefillChunk chunk(*backend_, *model_);
  chunk.Begin(parts);
  chunk.Drop(0);
  while (!chunk.done()) chunk.RunLayer(*state);
  for (const auto& layer : state->layers().recurrent) {
    if (layer == nullptr) continue;
    const StateValues values = Exported(*backend_, *layer, copy.slot, 0);
    for (size_t i = 0; i < layer->arrays().size(); ++i) {  // as it was reserved
      EXPECT_THAT(values[i], testing::Each(0.0f));
    }
  }
}

TEST_F(PrefillChunkTest, ADroppedPartTouchesNothingAndDisturbsNobody) {
  const auto state = model_->NewState(*backend_, 3, 20, 64);
  const SequenceState kept = *state->Reserve(2);
  SequenceState dropped = *state->Reserve(2);
  const auto prompt = RandomIds(70, 40, 1);
  const auto other = RandomIds(70, 40, 2);
  PrefillChunk chunk(*backend_, *model_);
  const PrefillPart parts[] = {{.tokens = other, .sequence = &dropped},
                               {.tokens = prompt, .sequence = &kept}};
  chunk.Begin(parts);
  chunk.RunLayer(*state);
  chunk.Drop(0);
  state->Release(dropped);
  const SequenceState next = *state->Reserve(2);  // takes over slot and pages
  EXPECT_EQ(next.slot, 1);
  while (!chunk.done()) chunk.RunLayer(*state);
  const auto both = LastLogits(chunk, 2);
  PrefillChunk clean(*backend_, *model_);
  const SequenceState alone = *state->Reserve(2);
  Begin(clean, prompt, alone);
  while (!clean.done()) clean.RunLayer(*state);
  const auto expected = LastLogits(clean);
  EXPECT_EQ(std::vector<float>(both.begin() + model_->config().padded_vocab_size, both.end()),
            expected);
  // The slot that was given away is still empty: the same prompt gives the same logits in it.
  Begin(clean, prompt, next);
  while (!clean.done()) clean.RunLayer(*state);
  EXPECT_EQ(LastLogits(clean), expected);
}

}  // namespace
}  // namespace hippodrome::prefill_chunk_test
