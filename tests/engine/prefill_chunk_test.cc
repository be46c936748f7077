#include "engine/prefill_chunk.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome {
namespace {

class PrefillChunkTest : public testing::Test {
 protected:
  std::vector<float> LastLogits(const PrefillChunk& chunk) {
    const OwnedTensor logits = backend_->NewTensor(1, model_->config().padded_vocab_size);
    chunk.LastLogits(logits);
    return Values(logits);
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
  const auto state = model_->NewState(*backend_, 1, 20, 64);
  const SequenceState sequence = *state->Reserve(20);
  const auto prompt = RandomIds(1100, 40, 1);
  PrefillChunk chunk(*backend_, *model_);
  EXPECT_TRUE(chunk.done());
  const auto rows = [&](int64_t start, int64_t max_rows) {
    chunk.Begin(prompt, start, sequence, max_rows);
    EXPECT_FALSE(chunk.done());
    return chunk.rows();
  };
  EXPECT_EQ(rows(0, 512), 512);
  EXPECT_EQ(rows(512, 512), 512);
  EXPECT_EQ(rows(1024, 512), 76);
  EXPECT_EQ(rows(500, 100), 12);  // up to the next multiple of the grid
  EXPECT_EQ(rows(0, 7), 7);
}

TEST_F(PrefillChunkTest, AnotherSequenceMayComeBetweenLayers) {
  const auto state = model_->NewState(*backend_, 2, 20, 64);
  const SequenceState a = *state->Reserve(5);
  const SequenceState b = *state->Reserve(5);
  const auto prompt = RandomIds(300, 40, 2);
  const auto other = RandomIds(200, 40, 3);
  PrefillChunk first(*backend_, *model_), second(*backend_, *model_);
  first.Begin(prompt, 0, a);
  second.Begin(other, 0, b);
  while (!first.done()) {
    first.RunLayer(*state);
    second.RunLayer(*state);
  }
  const auto fresh = model_->NewState(*backend_, 1, 20, 64);
  const SequenceState alone = *fresh->Reserve(5);
  PrefillChunk undisturbed(*backend_, *model_);
  undisturbed.Begin(prompt, 0, alone);
  while (!undisturbed.done()) undisturbed.RunLayer(*fresh);
  EXPECT_EQ(LastLogits(first), LastLogits(undisturbed));
}

TEST_F(PrefillChunkTest, TheLastLogitsAreTheLastOfAll) {
  const auto state = model_->NewState(*backend_, 1, 20, 64);
  const SequenceState sequence = *state->Reserve(5);
  PrefillChunk chunk(*backend_, *model_);
  chunk.Begin(RandomIds(33, 40, 4), 0, sequence);
  while (!chunk.done()) chunk.RunLayer(*state);
  const auto last = LastLogits(chunk);
  const OwnedTensor logits = backend_->NewTensor(33, model_->config().padded_vocab_size);
  chunk.AllLogits(logits);
  EXPECT_EQ(last, Values(logits.view.Rows(32, 1)));
}

}  // namespace
}  // namespace hippodrome
