#include "tools/limits/flops.h"

#include <gtest/gtest.h>

#include "tools/convert/models/bigs_presets.h"

namespace hippodrome::flops_test {
namespace {

struct Row {
  int64_t length;
  const char* bert;
  const char* bigs;
};

// "Pretraining Without Attention", Table 6.
TEST(FlopsTest, GivesEveryNumberOfThePaper) {
  const Row rows[] = {{128, "7.9E10", "8.1E10"},
                      {512, "3.4E11", "3.2E11"},
                      {1024, "7.2E11", "6.5E11"},
                      {4096, "4.1E12", "2.6E12"}};
  const BigsConfig bigs = BigsPreset("bigs-128").value();
  for (const Row& row : rows) {
    EXPECT_EQ(PaperNotation(CountFlops(BertLarge(), row.length).total()), row.bert);
    EXPECT_EQ(PaperNotation(CountFlops(bigs, row.length).total()), row.bigs);
  }
}

TEST(FlopsTest, CountsMatricesAndMixingApart) {
  const EncoderFlops bigs = CountFlops(BigsPreset("bigs-128").value(), 128);
  EXPECT_DOUBLE_EQ(bigs.matrices, 2.0 * 13 * 1024 * 1024 * 23 * 128);  // 13 d^2 with I = 3 d
  // Per channel and direction: two FFTs of 256 points, 129 products of complex numbers.
  EXPECT_DOUBLE_EQ(bigs.mixing, 23.0 * 1024 * 2 * (2 * 2.5 * 256 * 8 + 6 * 129));
  const EncoderFlops bert = CountFlops(BertLarge(), 512);
  EXPECT_DOUBLE_EQ(bert.matrices, 2.0 * 12 * 1024 * 1024 * 24 * 512);
  EXPECT_DOUBLE_EQ(bert.mixing, 4.0 * 512 * 512 * 1024 * 24);
}

TEST(FlopsTest, CountsTheOtherAblations) {
  BigsConfig gated = BertLarge();
  gated.block = EncoderBlock::kGated;
  gated.intermediate_size = 3072;
  EXPECT_DOUBLE_EQ(CountFlops(gated, 512).matrices, 2.0 * 13 * 1024 * 1024 * 24 * 512);
  BigsConfig stack = BertLarge();
  stack.routing = EncoderRouting::kSsm;
  EXPECT_DOUBLE_EQ(CountFlops(stack, 512).matrices, CountFlops(BertLarge(), 512).matrices);
  EXPECT_LT(CountFlops(stack, 512).mixing, CountFlops(BertLarge(), 512).mixing);
}

TEST(FlopsTest, NumbersArePrintedAsInThePaper) {
  EXPECT_EQ(PaperNotation(8.078e10), "8.1E10");
  EXPECT_EQ(PaperNotation(1e12), "1.0E12");
  EXPECT_EQ(PaperNotation(9.97e11), "1.0E12");
  EXPECT_EQ(PaperNotation(5), "5.0E0");
}

}  // namespace
}  // namespace hippodrome::flops_test
