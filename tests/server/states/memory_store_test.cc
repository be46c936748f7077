#include "server/states/memory_store.h"

#include <gtest/gtest.h>

#include "tests/testing/state_stores.h"

namespace hippodrome::memory_store_test {
namespace {

using std::chrono::seconds;

TEST(MemoryStoreTest, EvictsWhatWasNotUsedForLongest) {
  const StateBytes file = SmallStateFile(5);
  StoreMetrics metrics;
  const auto store = MakeMemoryStore(3 * std::ssize(*file), metrics.metrics());
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(store->Put("o", HandleOf(name), file, seconds(60)).ok());
  }
  const StateBytes held = store->Get("o", HandleOf("b")).value();
  ASSERT_TRUE(store->Get("o", HandleOf("a")).ok());
  ASSERT_TRUE(store->Put("o", HandleOf("d"), file, seconds(60)).ok());
  EXPECT_FALSE(store->Get("o", HandleOf("c")).ok());
  ASSERT_TRUE(store->Put("o", HandleOf("e"), file, seconds(60)).ok());
  EXPECT_FALSE(store->Get("o", HandleOf("b")).ok());
  EXPECT_TRUE(store->Get("o", HandleOf("a")).ok());
  EXPECT_EQ(*held, *file) << "who has it keeps it";
  EXPECT_EQ(metrics.Value("evictions_total"), 2);
}

TEST(MemoryStoreTest, WhatExpiredGoesBeforeWhatLives) {
  const StateBytes file = SmallStateFile(5);
  StoreMetrics metrics;
  int64_t now = 1000;
  const auto store = MakeMemoryStore(2 * std::ssize(*file), metrics.metrics(), [&] { return now; });
  ASSERT_TRUE(store->Put("o", HandleOf("a"), file, seconds(60)).ok());
  ASSERT_TRUE(store->Put("o", HandleOf("b"), file, seconds(10)).ok());
  now += 30;
  ASSERT_TRUE(store->Put("o", HandleOf("c"), file, seconds(60)).ok());
  EXPECT_TRUE(store->Get("o", HandleOf("a")).ok());
  EXPECT_EQ(metrics.Value("evictions_total"), 0);
  EXPECT_EQ(metrics.Value("bytes"), 2 * std::ssize(*file));
}

}  // namespace
}  // namespace hippodrome::memory_store_test
