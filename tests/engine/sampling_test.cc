#include "engine/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome::sampling_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

// The field at fault, or "".
std::string Fault(const SamplingFields& fields) {
  return Field(ToSamplingParameters(fields).status());
}

TEST(SamplingTest, TheEndsOfRangesAreInThem) {
  for (const float value : {0.0f, -0.0f, kSmallest, 1.0f, 100.0f}) {
    EXPECT_EQ(Fault({.temperature = value}), "") << value;
  }
  for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{1} << 30}) {
    EXPECT_EQ(Fault({.top_k = value}), "") << value;
  }
  for (const float value : {kSmallest, 0.5f, 1.0f}) EXPECT_EQ(Fault({.top_p = value}), "") << value;
  for (const float value : {0.0f, -0.0f, 1.0f}) EXPECT_EQ(Fault({.min_p = value}), "") << value;
}

TEST(SamplingTest, WhatIsBeyondThemIsNamed) {
  for (const float value : {-kSmallest, -1.0f, std::nextafter(100.0f, kInfinity), kInfinity,
                            -kInfinity, std::nanf("")}) {
    EXPECT_EQ(Fault({.temperature = value}), "temperature") << value;
  }
  for (const float value : {0.0f, -0.0f, -kSmallest, std::nextafter(1.0f, 2.0f), kInfinity,
                            -kInfinity, std::nanf("")}) {
    EXPECT_EQ(Fault({.top_p = value}), "top_p") << value;
  }
  for (const float value : {-kSmallest, std::nextafter(1.0f, 2.0f), kInfinity, std::nanf("")}) {
    EXPECT_EQ(Fault({.min_p = value}), "min_p") << value;
  }
}

// Also those that are in the range once they are cut to 32 bits.
TEST(SamplingTest, TopKIsCheckedBeforeItIsNarrowed) {
  for (const int64_t value :
       {int64_t{-1}, (int64_t{1} << 30) + 1, int64_t{1} << 32, (int64_t{1} << 32) + 5,
        std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(Fault({.top_k = value}), "top_k") << value;
  }
}

TEST(SamplingTest, ErrorsSayWhatWasFoundAndExpected) {
  EXPECT_EQ(Message(ToSamplingParameters({.top_k = -1}).status()),
            "top_k: -1 is not in [0, 1073741824]");
  EXPECT_EQ(Message(ToSamplingParameters({.top_p = 1.5f}).status()), "top_p: 1.5 is not in (0, 1]");
}

TEST(SamplingTest, ValuesStayWhatTheyAre) {
  const auto sampling = ToSamplingParameters({.temperature = 0.5f,
                                              .top_k = 7,
                                              .top_p = 0.25f,
                                              .min_p = 0.125f,
                                              .seed = std::numeric_limits<uint64_t>::max()});
  ASSERT_TRUE(sampling.ok()) << sampling.status();
  EXPECT_EQ(sampling->temperature, 0.5f);
  EXPECT_EQ(sampling->top_k, 7);
  EXPECT_EQ(sampling->top_p, 0.25f);
  EXPECT_EQ(sampling->min_p, 0.125f);
  EXPECT_EQ(sampling->seed, std::numeric_limits<uint64_t>::max());
}

TEST(SamplingTest, DefaultsAreThoseOfSamplingParameters) {
  const SamplingParameters expected;
  const auto sampling = ToSamplingParameters({});
  ASSERT_TRUE(sampling.ok()) << sampling.status();
  EXPECT_EQ(sampling->temperature, expected.temperature);
  EXPECT_EQ(sampling->top_k, expected.top_k);
  EXPECT_EQ(sampling->top_p, expected.top_p);
  EXPECT_EQ(sampling->min_p, expected.min_p);
  EXPECT_EQ(sampling->seed, expected.seed);
}

}  // namespace
}  // namespace hippodrome::sampling_test
