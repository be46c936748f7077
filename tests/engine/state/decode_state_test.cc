#include "engine/state/decode_state.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::decode_state_test {
namespace {

TEST(DecodeStateTest, HandsOutDistinctSlotsAndPagesAndTakesThemBack) {
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto model = MakeTestModel(*backend, TinyConfig());
  const auto state = model->NewState(*backend, 3, 10, 16);
  std::vector<SequenceState> held;
  std::set<int64_t> slots;
  std::set<int32_t> pages;
  for (const int64_t count : {4, 0, 6}) {
    auto reserved = state->Reserve(count);
    ASSERT_TRUE(reserved.has_value());
    slots.insert(reserved->slot);
    pages.insert(reserved->pages.begin(), reserved->pages.end());
    held.push_back(*std::move(reserved));
  }
  EXPECT_EQ(slots.size(), 3u);
  EXPECT_EQ(pages.size(), 10u);
  EXPECT_FALSE(state->Reserve(0).has_value());  // no slot
  state->Release(held[1]);
  EXPECT_FALSE(state->Reserve(1).has_value());  // no page
  EXPECT_EQ(state->free_slots(), 1);            // a failed reservation takes nothing
  state->Release(held[0]);
  state->Release(held[2]);
  EXPECT_EQ(state->free_slots(), 3);
  EXPECT_EQ(state->free_pages(), 10);
}

TEST(DecodeStateTest, AddsUpTheLayers) {
  const auto backend = MakeCpuBackend({.threads = 1});
  H3Config config = TinyConfig();
  const auto one = MakeTestModel(*backend, config)->NewState(*backend, 1, 1, 16);
  config.n_layer = 5;
  config.attention_layers = {1, 2};
  const auto more = MakeTestModel(*backend, config)->NewState(*backend, 1, 1, 16);
  EXPECT_GT(one->bytes_per_slot(), 0);
  EXPECT_EQ(one->bytes_per_page(), 16 * 2 * 32 * 4);  // tokens, k and v, d, f32
  EXPECT_EQ(more->bytes_per_slot() * 2, one->bytes_per_slot() * 3);
  EXPECT_EQ(more->bytes_per_page(), one->bytes_per_page() * 2);
}

}  // namespace
}  // namespace hippodrome::decode_state_test
