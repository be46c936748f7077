// The published implementation's numbers, from tests/testdata/h3_golden.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weights_source.h"
#include "engine/generator.h"
#include "engine/model_directory.h"
#include "engine/models/h3/state_space.h"
#include "engine/passes/forward.h"
#include "engine/passes/prefill_chunk.h"
#include "tests/reference/published_state.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/test_backend.h"

namespace hippodrome::golden_test {
namespace {

const std::string kDirectory = std::string(HIPPODROME_TESTDATA) + "/h3_golden";

class GoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    auto file = SafetensorsFile::Open(kDirectory + "/vectors.safetensors");
    ASSERT_TRUE(file.ok()) << file.status();
    vectors_ = *std::move(file);
  }

  std::vector<float> Floats(const std::string& name) const {
    return *ToFloats(*vectors_->Find(name));
  }
  // Row `row` of ids_L`length`.
  std::vector<int32_t> Ids(int64_t length, int64_t row) const {
    const auto ids = *ToIntegers(*vectors_->Find("ids_L" + std::to_string(length)));
    return {ids.begin() + row * length, ids.begin() + (row + 1) * length};
  }

  // Largest difference from the golden logits of both rows.
  double LogitsError(Backend& backend, const HybridH3& model, int64_t length,
                     const ForwardMode& mode) const {
    const bool tail = length > 64;
    const auto golden = Floats("logits_f64_L" + std::to_string(length) + (tail ? "_last32" : ""));
    const size_t per_row = golden.size() / 2;
    double worst = 0;
    for (int64_t row = 0; row < 2; ++row) {
      std::vector<float> logits;
      EXPECT_TRUE(Forward(backend, model, Ids(length, row), mode,
                          [&](int64_t, std::span<const float> rows) {
                            logits.insert(logits.end(), rows.begin(), rows.end());
                          })
                      .ok());
      for (size_t i = 0; i < per_row; ++i) {
        const double error =
            std::abs(logits[logits.size() - per_row + i] - golden[row * per_row + i]);
        worst = std::isnan(error) ? INFINITY : std::max(worst, error);
      }
    }
    return worst;
  }

  std::unique_ptr<SafetensorsFile> vectors_;
};

TEST_F(GoldenTest, TheReferenceIsThePublishedModel) {
  const auto backend = MakeReferenceBackend();
  const auto loaded = LoadDecoderDirectory(*backend, kDirectory);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (const int64_t length : {1, 7, 64, 257}) {
    // The vectors are stored in f32: logits of up to 9 are rounded by up to 5e-7.
    EXPECT_LE(LogitsError(*backend, *loaded->model, length, {}), 1e-6) << length;
  }
}

TEST_F(GoldenTest, LogitsAgreeInEveryMode) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto loaded = LoadDecoderDirectory(*backend, kDirectory);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (const int64_t length : {1, 7, 64, 257}) {
    // The published tolerances, which leave room for about five times the published f32 error.
    const double tolerance = length <= 64 ? 5e-4 : 2e-3;
    for (const ForwardMode mode : {ForwardMode{}, ForwardMode{.step = true},
                                   ForwardMode{.chunk = 7}, ForwardMode{.chunk = 64}}) {
      if (TestBackendIsSlow() && length > 64 && (mode.step || mode.chunk == 7)) continue;
      EXPECT_LE(LogitsError(*backend, *loaded->model, length, mode), tolerance)
          << "length " << length << " step " << mode.step << " chunk " << mode.chunk;
    }
  }
}

TEST_F(GoldenTest, GreedyTokensAreThePublishedOnes) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto loaded = LoadDecoderDirectory(*backend, kDirectory);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::ifstream in(kDirectory + "/greedy.txt");
  std::string line;
  int runs = 0;
  while (std::getline(in, line)) {
    const size_t bar = line.find('|');
    const auto parse = [](const std::string& text) {
      std::istringstream numbers(text);
      return std::vector<int32_t>(std::istream_iterator<int32_t>(numbers), {});
    };
    const auto expected = parse(line.substr(bar + 1));
    const auto generator = *Generator::Create(*backend, *loaded->model, {1, 1 << 20});
    ASSERT_TRUE(generator
                    ->Admit({.prompt = parse(line.substr(0, bar)),
                             .max_tokens = static_cast<int64_t>(expected.size()),
                             .sampling = {.temperature = 0}})
                    .ok());
    std::vector<TokenEvent> events;
    generator->Prefill(Generator::Clock::time_point::max(), events);
    while (events.back().finish == FinishReason::kNone) generator->Step(events);
    std::vector<int32_t> tokens;
    for (const TokenEvent& event : events) tokens.push_back(event.token);
    EXPECT_EQ(tokens, expected);
    ++runs;
  }
  EXPECT_EQ(runs, 4);
}

// Largest difference between `actual` and rows of the golden tensor.
double StateError(const std::vector<float>& actual, const std::vector<float>& golden, int64_t row) {
  EXPECT_EQ(actual.size() * 2, golden.size());
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    worst = std::max<double>(worst, std::abs(actual[i] - golden[row * actual.size() + i]));
  }
  return worst;
}

TEST_F(GoldenTest, StatesAreThePublishedOnes) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto loaded = LoadDecoderDirectory(*backend, kDirectory);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const HybridH3& model = *loaded->model;
  const auto file = SafetensorsFile::Open(kDirectory + "/model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  FileWeights source(**file);
  for (int64_t row = 0; row < 2; ++row) {
    const auto state = model.NewState(*backend, 1, 1, 64);
    const SequenceState sequence = *state->Reserve(1);
    const auto ids = Ids(7, row);
    PrefillChunk chunk(*backend, model);
    for (int64_t start = 0; start < 7; start += chunk.rows()) {
      const PrefillPart part{
          .tokens = std::span(ids).subspan(start, std::min<int64_t>(4, 7 - start)),
          .start = start,
          .sequence = &sequence};
      chunk.Begin({&part, 1});
      while (!chunk.done()) chunk.RunLayer(*state);
    }
    for (const int64_t layer : {0, 2}) {
      const auto ssm = ReadStateSpace(source, model.config(),
                                      "backbone.layers." + std::to_string(layer) + ".mixer.");
      ASSERT_TRUE(ssm.ok()) << ssm.status();
      const PublishedState exported =
          Published(ssm->View(model.config()),
                    Exported(*backend, *state->layers().recurrent[layer], sequence.slot, 7));
      const std::string name = "state_after_L7.layer" + std::to_string(layer);
      // Values of up to 4 after a layer of f32 products.
      EXPECT_LE(StateError(exported.shift, Floats(name + ".shift"), row), 2e-5);
      EXPECT_LE(StateError(exported.diagonal, Floats(name + ".diag"), row), 2e-5);
    }
  }
}

}  // namespace
}  // namespace hippodrome::golden_test
