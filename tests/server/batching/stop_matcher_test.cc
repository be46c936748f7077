#include "server/batching/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace hippodrome::stop_matcher_test {
namespace {

struct Expected {
  std::string text;
  bool stopped = false;
};

// Tries every end, then every stop string.
Expected Oracle(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      const bool here =
          stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0;
      if (here) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

std::string RandomText(std::mt19937& random, size_t most) {
  std::string text(random() % (most + 1), 'a');
  for (char& c : text) c = "ab"[random() % 2];
  return text;
}

TEST(StopMatcherTest, AgreesWithTheOracleHoweverTheTextIsCut) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = "b" + RandomText(random, 7);
    const std::string text = RandomText(random, 40);
    StopMatcher matcher(stops);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min(text.size() - at, 1 + random() % 5);
      out += matcher.Append(text.substr(at, size));
      at += size;
    }
    out += matcher.Finish();
    const Expected expected = Oracle(text, stops);
    ASSERT_EQ(out, expected.text) << text;
    ASSERT_EQ(matcher.stopped(), expected.stopped) << text;
  }
}

// What has been returned can never turn out to be part of a stop string.
TEST(StopMatcherTest, NeverReturnsAByteThatMayBelongToAStopString) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const std::string stop = "b" + RandomText(random, 7);
    const std::string text = RandomText(random, 20);
    StopMatcher matcher({stop});
    std::string out;
    for (const char c : text) out += matcher.Append(std::string(1, c));
    if (matcher.stopped()) continue;
    for (size_t size = 1; size < stop.size(); ++size) {
      if (!text.ends_with(stop.substr(0, size))) continue;
      ASSERT_LE(out.size() + size, text.size()) << text << " " << stop;
    }
  }
}

TEST(StopMatcherTest, HoldsBackOnlyWhatMayMatch) {
  StopMatcher matcher({"end", "done"});
  EXPECT_EQ(matcher.Append("the e"), "the ");
  EXPECT_EQ(matcher.Append("n"), "");
  EXPECT_EQ(matcher.Append("e"), "en");
  EXPECT_EQ(matcher.Append("nd and more"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.Append("more"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcherTest, TheLongestOfSeveralThatEndTogetherWins) {
  StopMatcher matcher({"c", "abc", "bc"});
  EXPECT_EQ(matcher.Append("xabc"), "x");
}

TEST(StopMatcherTest, FinishReturnsAnIncompleteMatch) {
  StopMatcher matcher({"stop"});
  EXPECT_EQ(matcher.Append("do not sto"), "do not ");
  EXPECT_EQ(matcher.Finish(), "sto");
}

// Backtracking by hand would take 10^5 * 16 * 256 comparisons here for each repetition.
TEST(StopMatcherTest, AdversarialStopsTakeLinearTime) {
  std::vector<std::string> stops;
  for (int i = 0; i < 16; ++i) stops.push_back(std::string(255 - i, 'a') + "b");
  StopMatcher matcher(stops);
  const std::string text(1 << 20, 'a');
  EXPECT_EQ(matcher.Append(text).size(), text.size() - 255);
  EXPECT_EQ(matcher.Append("b"), "");
  EXPECT_TRUE(matcher.stopped());
}

}  // namespace
}  // namespace hippodrome::stop_matcher_test
