// Many streams at once say what each says alone, on every backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/generator.h"
#include "engine/passes/forward.h"
#include "tests/testing/random_model.h"
#include "tests/testing/test_backend.h"

namespace hippodrome::streams_test {
namespace {

constexpr auto kForever = Generator::Clock::time_point::max();
// On a device the order of a product's sums may follow the number of rows: logits of about 10 then
// differ by a few of their roundings, and so may a choice between equally good tokens.
constexpr float kMargin = 1e-4f;

using Tokens = std::vector<int32_t>;

std::vector<Tokens> Say(Backend& backend, const HybridH3& model,
                        const std::vector<GenerationRequest>& requests) {
  const auto streams = static_cast<int64_t>(requests.size());
  const auto generator = *Generator::Create(backend, model, {streams, 1 << 22});
  std::map<SequenceId, size_t> order;
  for (const GenerationRequest& request : requests) {
    order.emplace(generator->Admit(request).value(), order.size());
  }
  std::vector<TokenEvent> events;
  generator->Prefill(kForever, events);
  while (generator->decoding() > 0) generator->Step(events);
  std::vector<Tokens> tokens(requests.size());
  for (const TokenEvent& event : events) tokens[order.at(event.sequence)].push_back(event.token);
  return tokens;
}

// Between the two most likely tokens after `ids`.
float Margin(Backend& backend, const HybridH3& model, const Tokens& ids) {
  std::vector<float> last;
  const auto keep = [&](int64_t, std::span<const float> rows) {
    last.assign(rows.end() - model.config().padded_vocab_size, rows.end());
  };
  EXPECT_TRUE(Forward(backend, model, ids, {}, keep).ok());
  last.resize(static_cast<size_t>(model.config().vocab_size));
  std::partial_sort(last.begin(), last.begin() + 2, last.end(), std::greater<>());
  return last[0] - last[1];
}

TEST(StreamsTest, SixtyFourGreedyStreamsSayWhatEachSaysAlone) {
  HIPPODROME_TEST_BACKEND(backend);
  const auto model = MakeTestModel(*backend, TinyConfig());
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 64; ++i) {
    requests.push_back({.prompt = RandomIds(1 + i % 11 * 3, 40, i),
                        .max_tokens = 4 + i % 5,
                        .sampling = {.temperature = 0},
                        .ignore_eos = true});
  }
  const std::vector<Tokens> together = Say(*backend, *model, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Tokens alone = Say(*backend, *model, {requests[i]})[0];
    ASSERT_EQ(alone.size(), together[i].size());
    const auto differ = std::mismatch(alone.begin(), alone.end(), together[i].begin()).first;
    if (differ == alone.end()) continue;
    Tokens ids = requests[i].prompt;
    ids.insert(ids.end(), alone.begin(), differ);
    EXPECT_LT(Margin(*backend, *model, ids), kMargin) << "stream " << i;
  }
}

}  // namespace
}  // namespace hippodrome::streams_test
