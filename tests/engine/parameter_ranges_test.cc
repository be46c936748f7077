#include "engine/parameter_ranges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/base/field_error.h"

namespace hippodrome::parameter_ranges_test {
namespace {

TEST(ParameterRangesTest, RangesAreWrittenAsIntervals) {
  EXPECT_EQ(ToString(kTemperatureRange), "[0, 100]");
  EXPECT_EQ(ToString(kTopPRange), "(0, 1]");
  EXPECT_EQ(ToString(kTopKRange), "[0, 1073741824]");
  EXPECT_EQ(ToString(kRepetitionPenaltyRange), "[0.01, 100]");
}

TEST(ParameterRangesTest, FloatsAreComparedAsFloats) {
  EXPECT_TRUE(CheckParameter(kRepetitionPenaltyRange, 0.01f).ok());
  const absl::Status below = CheckParameter(kRepetitionPenaltyRange, std::nextafter(0.01f, 0.0f));
  EXPECT_EQ(Field(below), "repetition_penalty");
  EXPECT_EQ(CheckParameter(kTopPRange, 0.0f).message(), "top_p: 0 is not in (0, 1]");
  for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_FALSE(CheckParameter(kTemperatureRange, value).ok()) << value;
  }
}

TEST(ParameterRangesTest, IntegersAreCheckedInFull) {
  EXPECT_TRUE(CheckParameter(kMaxTokensRange, int64_t{1} << 20).ok());
  for (const int64_t value :
       {int64_t{-1}, (int64_t{1} << 20) + 1, int64_t{1} << 32, std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max()}) {
    EXPECT_FALSE(CheckParameter(kMaxTokensRange, value).ok()) << value;
  }
}

TEST(ParameterRangesTest, DefaultsAreThoseOfTheFields) {
  const SamplingFields fields;
  EXPECT_EQ(*kTemperatureRange.usual, fields.temperature);
  EXPECT_EQ(*kTopKRange.usual, static_cast<double>(fields.top_k));
  EXPECT_EQ(*kTopPRange.usual, fields.top_p);
  EXPECT_EQ(*kMinPRange.usual, fields.min_p);
  EXPECT_EQ(*kTypicalPRange.usual, fields.typical_p);
  const LogitChanges changes;
  EXPECT_EQ(*kRepetitionPenaltyRange.usual, changes.repetition_penalty);
  EXPECT_EQ(*kPresencePenaltyRange.usual, changes.presence_penalty);
  EXPECT_EQ(*kFrequencyPenaltyRange.usual, changes.frequency_penalty);
}

}  // namespace
}  // namespace hippodrome::parameter_ranges_test
