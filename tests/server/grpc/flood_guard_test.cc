#include "server/grpc/flood_guard.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>

namespace hippodrome::flood_guard_test {
namespace {

enum Type : uint8_t {
  kData,
  kHeaders,
  kPriority,
  kReset,
  kSettings,
  kPing = 6,
  kUpdate = 8,
  kMore
};

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string bytes;
  for (const int shift : {16, 8, 0}) bytes += static_cast<char>(payload.size() >> shift & 255);
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(stream >> shift & 255);
  return bytes + payload;
}

// What `frames(stream)` gives for one stream after the other: much more than is looked at.
std::string Sent(const std::function<std::string(uint32_t)>& frames) {
  std::string bytes;
  for (uint32_t stream = 1; bytes.size() < 4 * kFloodSample; stream += 2) bytes += frames(stream);
  return bytes;
}

// Wherever the sample begins.
int SamplesThatFlood(const std::string& bytes) {
  int floods = 0;
  for (size_t i = 0; i < 64; ++i) {
    floods += IsFlood(std::string_view(bytes).substr(i * 257, kFloodSample)) ? 1 : 0;
  }
  return floods;
}

std::string Random(size_t size) {
  static std::mt19937 random(5);
  std::string bytes(size, 0);
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// A call: 100 bytes of headers, one message.
std::string CallOf(uint32_t stream, const std::string& message) {
  std::string bytes = Frame(kHeaders, 4, stream, Random(100));
  for (size_t at = 0; at < message.size(); at += 16384) {
    bytes += Frame(kData, at + 16384 >= message.size() ? 1 : 0, stream, message.substr(at, 16384));
  }
  return bytes;
}

TEST(IsFloodTest, FramesThatCarryNothing) {
  for (const std::string& frame :
       {Frame(kPing, 0, 0, "12345678"), Frame(kSettings, 0, 0, std::string(6, '\0')),
        Frame(kSettings, 1, 0, ""), Frame(kData, 0, 7, ""), Frame(kReset, 0, 9, "1234"),
        Frame(kPriority, 0, 9, "12345")}) {
    EXPECT_EQ(SamplesThatFlood(Sent([&](uint32_t) { return frame; })), 64);
  }
}

TEST(IsFloodTest, StreamsThatAreResetAtOnce) {
  EXPECT_EQ(SamplesThatFlood(Sent([](uint32_t stream) {
              return Frame(kHeaders, 4, stream, Random(150)) + Frame(kReset, 0, stream, "1234");
            })),
            64);
}

TEST(IsFloodTest, AHeaderBlockWithoutEnd) {
  const auto part = [](uint32_t) { return Frame(kMore, 0, 1, Random(15600)); };
  EXPECT_EQ(SamplesThatFlood(Sent(part)), 64);
}

TEST(IsFloodTest, CallsAreNone) {
  for (const size_t size : {1, 20, 500, 16384, 100000}) {
    for (const std::string& message :
         {Random(size), std::string(size, '\0'), std::string(size, '\1'), std::string(size, 'a')}) {
      EXPECT_EQ(SamplesThatFlood(Sent([&](uint32_t stream) { return CallOf(stream, message); })), 0)
          << size;
    }
  }
}

TEST(IsFloodTest, CallsThatAreCancelledAreNone) {
  EXPECT_EQ(SamplesThatFlood(Sent([](uint32_t stream) {
              return CallOf(stream, Random(20)) + Frame(kReset, 0, stream, "1234");
            })),
            0);
}

TEST(IsFloodTest, AClientThatReadsMuchIsNone) {
  const std::string update = Frame(kUpdate, 0, 0, "1234") + Frame(kUpdate, 0, 7, "1234");
  EXPECT_EQ(SamplesThatFlood(Sent([&](uint32_t) { return update; })), 0);
}

TEST(IsFloodTest, AnyBytesHaveAnAnswer) {
  EXPECT_FALSE(IsFlood(""));
  EXPECT_FALSE(IsFlood(std::string(8, '\0')));
  EXPECT_FALSE(IsFlood(std::string(1 << 20, '\0')));
  for (size_t size = 1; size < 300; ++size) EXPECT_FALSE(IsFlood(Random(size)));
  // Frames that begin everywhere, and lead nowhere.
  std::string bytes;
  while (bytes.size() < kFloodSample) bytes += Frame(kUpdate, 0, 0, "\0\0\4\x8");
  EXPECT_FALSE(IsFlood(bytes));
}

TEST(FloodGuardTest, TheThirdTimeInASecondBarsForTenSeconds) {
  using std::chrono::milliseconds;
  FloodGuard guard;
  const FloodGuard::Clock::time_point begin{std::chrono::hours(1)};
  const auto at = [begin](int ms) { return begin + milliseconds(ms); };
  EXPECT_FALSE(guard.Saw("a", at(0)));
  EXPECT_FALSE(guard.Saw("a", at(500)));
  EXPECT_FALSE(guard.Saw("b", at(500)));
  EXPECT_FALSE(guard.Bars("a", at(500)));
  EXPECT_TRUE(guard.Saw("a", at(1000)));
  EXPECT_TRUE(guard.Bars("a", at(10999)));
  EXPECT_FALSE(guard.Bars("b", at(1000)));
  EXPECT_FALSE(guard.Bars("a", at(11000)));
  // From the beginning.
  EXPECT_FALSE(guard.Saw("a", at(11000)));
}

TEST(FloodGuardTest, WhatIsSeenNowAndThenIsForgotten) {
  FloodGuard guard;
  FloodGuard::Clock::time_point now{std::chrono::hours(1)};
  for (int i = 0; i < 100; ++i, now += std::chrono::milliseconds(600)) {
    EXPECT_FALSE(guard.Saw("a", now)) << i;
  }
}

}  // namespace
}  // namespace hippodrome::flood_guard_test
