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

TEST(DecodeStateTest, ForksShareFullPagesAndGiveThemBackOnce) {
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto model = MakeTestModel(*backend, TinyConfig());
  const auto state = model->NewState(*backend, 4, 10, 16);
  SequenceState first = *state->Reserve(4);
  SequenceState fork = *state->Fork(first, 40, 5);  // two full pages and half a page
  EXPECT_NE(fork.slot, first.slot);
  EXPECT_EQ(state->free_pages(), 10 - 4 - 3);
  EXPECT_EQ(fork.pages[1], first.pages[1]);
  EXPECT_NE(fork.pages[2], first.pages[2]);
  EXPECT_FALSE(state->Fork(first, 40, 6).has_value());  // four fresh pages, and three are left
  EXPECT_EQ(state->free_pages(), 3);
  EXPECT_EQ(state->free_slots(), 2);
  SequenceState node = *state->Share(first, 40);
  EXPECT_EQ(node.pages, std::vector<int32_t>(first.pages.begin(), first.pages.begin() + 3));
  EXPECT_EQ(state->free_pages(), 3);  // no page of its own
  state->Release(first);
  EXPECT_EQ(state->free_pages(), 4);  // the one that nobody shares
  state->Release(fork);
  EXPECT_EQ(state->free_pages(), 7);
  state->Release(node);
  EXPECT_EQ(state->free_pages(), 10);
  EXPECT_EQ(state->free_slots(), 4);
}

TEST(DecodeStateTest, ResizesAtTheEnd) {
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto state = MakeTestModel(*backend, TinyConfig())->NewState(*backend, 2, 6, 16);
  SequenceState a = *state->Reserve(2);
  const std::vector<int32_t> pages = a.pages;
  EXPECT_FALSE(state->Resize(a, 7));
  EXPECT_EQ(a.pages, pages);
  EXPECT_TRUE(state->Resize(a, 6));
  EXPECT_EQ(std::vector(a.pages.begin(), a.pages.begin() + 2), pages);
  EXPECT_EQ(state->free_pages(), 0);
  EXPECT_TRUE(state->Resize(a, 1));
  EXPECT_EQ(state->free_pages(), 5);
  state->Release(a);
  EXPECT_EQ(state->free_pages(), 6);
}

TEST(DecodeStateTest, PagesBeforeTheWindowMakeRoomForWhatComes) {
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto state =
      MakeTestModel(*backend, TinyConfig())->NewState(*backend, 3, 8, kWindowBlock, 100);
  SequenceState a = *state->Reserve(4);
  const std::vector<int32_t> pages = a.pages;
  EXPECT_TRUE(state->Slide(a, 162));  // sees positions 63 to 162
  EXPECT_EQ(a.first_row, 0);
  EXPECT_EQ(a.pages, pages);
  EXPECT_TRUE(state->Slide(a, 163));
  EXPECT_EQ(a.first_row, 64);
  EXPECT_EQ(std::vector(a.pages.begin(), a.pages.begin() + 3),
            std::vector(pages.begin() + 1, pages.end()));
  EXPECT_EQ(a.pages.size(), 4u);
  EXPECT_EQ(state->free_pages(), 4);

  SequenceState fork = *state->Fork(a, 250, 4);  // sees from 128 on: one full page and a part
  EXPECT_EQ(fork.first_row, 128);
  EXPECT_EQ(fork.pages[0], a.pages[1]);
  EXPECT_NE(fork.pages[1], a.pages[2]);
  EXPECT_EQ(state->free_pages(), 1);
  SequenceState node = *state->Share(a, 192);  // sees from 64 on
  EXPECT_EQ(node.first_row, 64);
  EXPECT_EQ(node.pages, std::vector(a.pages.begin(), a.pages.begin() + 2));

  // Others have both pages that it would give back, and one is free for two that it needs.
  const std::vector<int32_t> before = a.pages;
  EXPECT_FALSE(state->Slide(a, 163 + 2 * 64));
  EXPECT_EQ(a.pages, before);
  EXPECT_EQ(a.first_row, 64);
  EXPECT_TRUE(state->Slide(a, 163 + 64));
  EXPECT_EQ(state->free_pages(), 0);
  state->Release(node);
  EXPECT_EQ(state->free_pages(), 1);
  EXPECT_TRUE(state->Slide(a, 163 + 2 * 64));
  state->Release(a);
  state->Release(fork);
  EXPECT_EQ(state->free_pages(), 8);
}

}  // namespace
}  // namespace hippodrome::decode_state_test
