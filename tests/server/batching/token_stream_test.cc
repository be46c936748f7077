#include "server/batching/token_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/base/status.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::token_stream_test {
namespace {

StreamUpdate Token(int32_t id, int64_t count) {
  StreamUpdate update;
  update.text = std::string(1, static_cast<char>('a' + id));
  update.token_ids = {id};
  update.completion_tokens = count;
  return update;
}

TEST(TokenStreamTest, GivesEveryUpdateByItself) {
  TokenStream stream(10);
  EXPECT_FALSE(stream.Take().has_value());
  EXPECT_TRUE(stream.Push(Token(0, 1)));
  EXPECT_TRUE(stream.Push(Token(1, 2)));
  for (const char* text : {"a", "b"}) {
    const auto update = stream.Take();
    ASSERT_TRUE(update.has_value());
    EXPECT_EQ(update->text, text);
    EXPECT_EQ(update->token_ids.size(), 1u);
    EXPECT_FALSE(update->last());
  }
  EXPECT_FALSE(stream.Take().has_value());
}

TEST(TokenStreamTest, WakesWhenSomethingWaitsAfterNothingDid) {
  TokenStream stream(10);
  int wakes = 0;
  stream.Push(Token(0, 1));
  stream.OnUpdate([&] { ++wakes; });
  EXPECT_EQ(wakes, 1);
  stream.Push(Token(1, 2));
  EXPECT_EQ(wakes, 1);
  while (stream.Take()) {
  }
  stream.Push(Token(2, 3));
  EXPECT_EQ(wakes, 2);
}

TEST(TokenStreamTest, WakesForSeveralTokensOrForTheLast) {
  TokenStream stream(10);
  int wakes = 0;
  stream.OnUpdate([&] { ++wakes; }, 3);
  for (int expected : {0, 0, 1, 1}) {
    stream.Push(Token(0, 1));
    EXPECT_EQ(wakes, expected);
  }
  while (stream.Take()) {
  }
  stream.Push(Token(1, 5));
  EXPECT_EQ(wakes, 1);
  StreamUpdate last = Token(2, 6);
  last.finish = StreamFinish::kLength;
  stream.Push(std::move(last));
  EXPECT_EQ(wakes, 2);
}

TEST(TokenStreamTest, WakesBeforeItHasToRefuse) {
  TokenStream stream(2);
  int wakes = 0;
  stream.OnUpdate([&] { ++wakes; }, 64);
  EXPECT_TRUE(stream.Push(Token(0, 1)));
  EXPECT_EQ(wakes, 0);
  EXPECT_TRUE(stream.Push(Token(1, 2)));
  EXPECT_EQ(wakes, 1);
}

TEST(TokenStreamTest, RefusesBeyondTheBoundButAlwaysTakesAnError) {
  TokenStream stream(2);
  EXPECT_TRUE(stream.Push(Token(0, 1)));
  EXPECT_TRUE(stream.Push(Token(1, 2)));
  EXPECT_FALSE(stream.Push(Token(2, 3)));
  EXPECT_FALSE(stream.ended());
  stream.Fail(Unavailable("stop"));
  EXPECT_TRUE(stream.ended());
  EXPECT_TRUE(stream.Take()->status.ok());
  EXPECT_TRUE(stream.Take()->status.ok());
  EXPECT_TRUE(absl::IsUnavailable(stream.Take()->status));
}

TEST(TokenStreamTest, NoTokenIsLostBetweenTwoThreads) {
  constexpr int kTokens = 20000;
  TokenStream stream(kTokens);
  std::thread writer([&] {
    for (int i = 1; i <= kTokens; ++i) {
      StreamUpdate update = Token(i % 26, i);
      if (i == kTokens) update.finish = StreamFinish::kLength;
      stream.Push(std::move(update));
    }
  });
  std::atomic<int> wakes = 0;
  stream.OnUpdate([&] { ++wakes; });
  int tokens = 0;
  for (bool last = false; !last;) {
    ASSERT_TRUE(WaitUntil([&] { return wakes.exchange(0) > 0; }));
    while (const auto update = stream.Take()) {
      tokens += static_cast<int>(update->token_ids.size());
      last = update->last();
    }
  }
  writer.join();
  EXPECT_EQ(tokens, kTokens);
}

}  // namespace
}  // namespace hippodrome::token_stream_test
