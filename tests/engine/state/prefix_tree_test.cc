#include "engine/state/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/random_model.h"

namespace hippodrome::prefix_tree_test {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t kAny = INT64_MAX;

TEST(PrefixTreeTest, FindsTheDeepestStateWithinBounds) {
  PrefixTree tree;
  const Tokens prompt = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(tree.Find("", prompt, 0, kAny).state, nullptr);
  tree.Put("", Tokens{1, 2}, {.slot = 2});
  tree.Put("", Tokens{1, 2, 3, 4}, {.slot = 4});
  tree.Put("", Tokens{1, 2, 3, 9}, {.slot = 9});
  const auto deepest = tree.Find("", prompt, 0, kAny);
  EXPECT_EQ(deepest.position, 4);
  EXPECT_EQ(deepest.state->slot, 4);
  EXPECT_EQ(deepest.common, 4);
  EXPECT_EQ(tree.Find("", prompt, 0, 3).position, 2);
  EXPECT_EQ(tree.Find("", prompt, 3, 3).position, 0);
  EXPECT_EQ(tree.Find("", Tokens{1, 2, 3, 8}, 0, kAny).common, 3);  // where it branches
  EXPECT_EQ(tree.Find("other", prompt, 0, kAny).common, 0);
}

TEST(PrefixTreeTest, GivesUpTheStateThatWasUsedLongestAgo) {
  PrefixTree tree;
  tree.Put("a", Tokens{1, 2, 3}, {.slot = 0});
  tree.Put("a", Tokens{1}, {.slot = 1});
  tree.Put("b", Tokens{1, 2}, {.slot = 2});
  EXPECT_TRUE(tree.Touch("a", Tokens{1, 2, 3}));
  EXPECT_FALSE(tree.Touch("a", Tokens{1, 2}));
  EXPECT_FALSE(tree.Touch("c", Tokens{1}));
  EXPECT_EQ(tree.size(), 3);
  EXPECT_EQ(tree.TakeOldest()->slot, 1);
  EXPECT_EQ(tree.TakeOldest()->slot, 2);
  EXPECT_EQ(tree.Find("b", Tokens{1, 2}, 0, kAny).common, 0);  // nothing is left of it
  EXPECT_EQ(tree.Find("a", Tokens{1, 2, 3}, 0, kAny).state->slot, 0);
  EXPECT_EQ(tree.TakeOldest()->slot, 0);
  EXPECT_FALSE(tree.TakeOldest().has_value());
}

// Against a list that is searched from end to end. Three ids, so that prompts branch everywhere.
TEST(PrefixTreeTest, AgreesWithAListInRandomOperations) {
  PrefixTree tree;
  std::map<std::pair<std::string, Tokens>, int64_t> list;
  std::vector<std::pair<std::string, Tokens>> by_use;
  std::mt19937 random(1);
  const auto touch = [&](const auto& key) {
    std::erase(by_use, key);
    by_use.push_back(key);
  };
  for (int64_t i = 0; i < 20000; ++i) {
    const std::string salt = random() % 3 == 0 ? "salt" : "";
    const Tokens tokens = RandomIds(1 + random() % 9, 3, static_cast<uint32_t>(random()));
    const std::pair key{salt, tokens};
    const uint32_t what = random() % 4;
    if (what == 0) {
      ASSERT_EQ(tree.Touch(salt, tokens), list.contains(key));
      if (list.contains(key)) {
        touch(key);
      } else {
        tree.Put(salt, tokens, {.slot = i});
        list[key] = i;
        touch(key);
      }
    } else if (what == 1 && list.size() > 10) {
      ASSERT_EQ(tree.TakeOldest()->slot, list.at(by_use.front()));
      list.erase(by_use.front());
      by_use.erase(by_use.begin());
    } else {
      const auto size = static_cast<int64_t>(tokens.size());
      const int64_t least = random() % 4, most = size - random() % 2;
      int64_t best = 0, common = 0;
      for (const auto& [other, slot] : list) {
        if (other.first != salt) continue;
        const auto end =
            std::mismatch(tokens.begin(), tokens.end(), other.second.begin(), other.second.end());
        common = std::max<int64_t>(common, end.first - tokens.begin());
        const int64_t length = std::ssize(other.second);
        if (end.second == other.second.end() && length >= least && length <= most) {
          best = std::max(best, length);
        }
      }
      const PrefixTree::Found found = tree.Find(salt, tokens, least, most);
      ASSERT_EQ(found.position, best);
      ASSERT_EQ(found.common, common);
      if (best == 0) continue;
      ASSERT_EQ(found.state->slot, list.at({salt, Tokens(tokens.begin(), tokens.begin() + best)}));
    }
    ASSERT_EQ(tree.size(), std::ssize(list));
  }
}

}  // namespace
}  // namespace hippodrome::prefix_tree_test
