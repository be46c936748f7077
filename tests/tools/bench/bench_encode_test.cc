#include "tools/bench/bench_encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::bench_encode_test {
namespace {

using testing::ElementsAre;

Machine TestMachine() {
  return {.backend = MakeCpuBackend({.threads = 1}),
          .name = "test",
          .measure_ceilings = [](OfRuns) { return Ceilings{1, 1e15, 1e18, 1e18}; }};
}

TEST(BenchEncodeTest, ShortModelsAreMeasuredInBatchesAndLongOnesAtTwoLengths) {
  BigsConfig config = TinyBigsConfig();
  config.max_position_embeddings = 128;
  EXPECT_THAT(DefaultEncodeBenchmark(config).lengths, ElementsAre(128));
  EXPECT_THAT(DefaultEncodeBenchmark(config).batches, ElementsAre(1, 8));
  config.max_position_embeddings = 4096;
  EXPECT_THAT(DefaultEncodeBenchmark(config).lengths, ElementsAre(512, 4096));
  EXPECT_THAT(DefaultEncodeBenchmark(config).batches, ElementsAre(1));
}

TEST(BenchEncodeTest, EveryHeadGivesARateAndItsShares) {
  for (const EncoderHead head :
       {EncoderHead::kNone, EncoderHead::kMaskedLm, EncoderHead::kSequenceClassification,
        EncoderHead::kQuestionAnswering}) {
    EncodeBenchmark benchmark{.config = TinyBigsConfig(),
                              .weights = DType::kF32,
                              .lengths = {7, 20},
                              .batches = {1, 3},
                              .repeats = 1};
    benchmark.config.head = head;
    Machine machine = TestMachine();
    const auto report = BenchEncode(machine, benchmark);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(report->results.size(), 4u);
    const BenchResult& last = report->results.back();
    EXPECT_EQ(last.name, "encode");
    EXPECT_EQ(last.length, 20);
    EXPECT_EQ(last.batch, 3);
    EXPECT_GT(last.value, 0);
    EXPECT_LT(last.fraction, 1);
    EXPECT_NEAR(last.value / last.limit, last.fraction, 1e-9);
    EXPECT_DOUBLE_EQ(last.bytes_per_token,
                     EncodeCost(benchmark.config, 3, 20, DType::kF32).bytes / 60);
    ASSERT_EQ(report->shares.size(), 4u);
    double whole = 0;
    for (const auto& [operation, share] : report->shares.at("encode 3 x 20")) whole += share;
    EXPECT_NEAR(whole, 1, 1e-6);
    EXPECT_TRUE(report->shares.at("encode 3 x 20").contains("long_conv"));
  }
}

TEST(BenchEncodeTest, InputsThatTheModelDoesNotTakeAreRefused) {
  Machine machine = TestMachine();
  const auto report =
      BenchEncode(machine, {.config = TinyBigsConfig(), .lengths = {301}, .batches = {1}});
  EXPECT_EQ(report.status().code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace hippodrome::bench_encode_test
