#include "tools/evaluate/positions/window_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "engine/generator.h"
#include "engine/passes/forward.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::window_reader_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// A prompt has a token more than a window reads, so that its last chunk may be cut, and rounded,
// otherwise: logits of up to 30 by some of their roundings.
auto AreNear(std::span<const double> expected) {
  std::vector<testing::Matcher<double>> each;
  for (const double value : expected) each.push_back(testing::DoubleNear(value, 1e-4));
  return testing::ElementsAreArray(each);
}

class WindowReaderTest : public testing::Test {
 protected:
  std::unique_ptr<WindowReader> Reader(const WindowOptions& options) {
    return WindowReader::Make(*cpu_, *model_, options).value();
  }
  absl::Status Error(const HybridH3& model, const WindowOptions& options) {
    return WindowReader::Make(*cpu_, model, options).status();
  }
  // What serving says of a prompt.
  std::vector<double> Served(const std::vector<int32_t>& ids, int64_t attention_window) {
    const auto generator =
        Generator::Create(
            *cpu_, *model_,
            {.max_sequences = 1, .key_value_bytes = 1 << 22, .attention_window = attention_window})
            .value();
    EXPECT_TRUE(
        generator->Admit({.prompt = ids, .max_tokens = 1, .likeliest = 0, .score_prompt = true})
            .ok());
    std::vector<TokenEvent> events;
    while (events.empty()) generator->Prefill(Generator::Clock::time_point::max(), events);
    std::vector<double> nll;
    for (size_t t = 1; t < ids.size(); ++t) {
      nll.push_back(-events[0].prompt_scores[t].log_probability);
    }
    return nll;
  }

  const std::unique_ptr<Backend> cpu_ = MakeCpuBackend({.threads = 2});
  const std::unique_ptr<HybridH3> model_ = MakeTestModel(*cpu_, TinyConfig());
};

// Lengths around those of chunks, one after another through the same state.
TEST_F(WindowReaderTest, ScoresAreThoseOfServing) {
  const auto reader = Reader({.length = 700});
  for (const int64_t length : {700, 1, 255, 256, 257, 600}) {
    const auto ids = RandomIds(length + 1, 40, 3);
    const std::vector<double> expected = Served(ids, 0);
    for (const int64_t first : {int64_t{0}, length / 2, length - 1}) {
      const auto scores = reader->Read(ids, first);
      ASSERT_TRUE(scores.ok()) << scores.status();
      EXPECT_THAT(scores->nll, AreNear(std::span(expected).subspan(first)))
          << length << " from " << first;
      ASSERT_EQ(std::ssize(scores->seconds), length);
      EXPECT_GT(std::ranges::min(scores->seconds), 0);
    }
  }
}

TEST_F(WindowReaderTest, AnAttentionWindowIsThatOfServing) {
  const auto ids = RandomIds(901, 40, 4);
  for (const int64_t attention_window : {64, 100, 300, 900}) {
    const auto reader = Reader({.length = 900, .attention_window = attention_window});
    const auto scores = reader->Read(ids, 0);
    ASSERT_TRUE(scores.ok()) << scores.status();
    EXPECT_THAT(scores->nll, AreNear(Served(ids, attention_window))) << attention_window;
    if (attention_window < 900) {
      EXPECT_THAT(scores->nll, Not(AreNear(Served(ids, 0)))) << attention_window;
    }
  }
}

TEST_F(WindowReaderTest, KeysAndValuesGrowAndStatesOfRecurrentLayersDoNot) {
  const auto hybrid = Reader({.length = 1000});
  const int64_t page = kPageTokens * 2 * 32 * sizeof(float);
  EXPECT_GT(hybrid->StateBytes(0), 0);
  EXPECT_EQ(hybrid->StateBytes(1), hybrid->StateBytes(0) + page);
  EXPECT_EQ(hybrid->StateBytes(64), hybrid->StateBytes(1));
  EXPECT_EQ(hybrid->StateBytes(1000), hybrid->StateBytes(0) + 16 * page);

  const auto windowed = Reader({.length = 1000, .attention_window = 128});
  EXPECT_EQ(windowed->StateBytes(1000), windowed->StateBytes(360));

  H3Config config = TinyConfig();
  config.attention_layers.clear();
  const auto recurrent = MakeTestModel(*cpu_, config);
  const auto reader = WindowReader::Make(*cpu_, *recurrent, {.length = 1000}).value();
  EXPECT_GT(reader->StateBytes(0), 0);
  EXPECT_EQ(reader->StateBytes(1000), reader->StateBytes(0));
}

TEST_F(WindowReaderTest, SaysWhatAModelCannotRead) {
  H3Config config = TinyConfig();
  config.max_position_embeddings = 50;
  const auto positions = MakeTestModel(*cpu_, config);
  EXPECT_TRUE(Error(*positions, {.length = 50}).ok());
  const absl::Status beyond = Error(*positions, {.length = 51});
  EXPECT_TRUE(absl::IsOutOfRange(beyond));
  EXPECT_THAT(beyond.message(), HasSubstr("windows of 51 tokens exceed the model's 50 positions"));

  config = TinyConfig();
  config.attention_layers.clear();
  const auto recurrent = MakeTestModel(*cpu_, config);
  EXPECT_THAT(Error(*recurrent, {.length = 50, .attention_window = 64}).message(),
              HasSubstr("the model has no attention layers"));

  EXPECT_TRUE(absl::IsInvalidArgument(
      Reader({.length = 50})->Read(std::vector<int32_t>{1, 40}, 0).status()));
}

}  // namespace
}  // namespace hippodrome::window_reader_test
