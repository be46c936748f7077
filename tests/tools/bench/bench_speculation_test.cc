#include "tools/bench/bench_speculation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::bench_speculation_test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(ParseSpeculationPromptsTest, ReadsALineForEach) {
  const auto prompts = ParseSpeculationPrompts(
      "{\"kind\": \"list\", \"prompt\": \"1.\\n2.\"}\n"
      "{\"kind\": \"free\", \"prompt\": \"It\", \"temperature\": 0.8}\n");
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  ASSERT_THAT(*prompts, SizeIs(2));
  EXPECT_EQ((*prompts)[0].text, "1.\n2.");
  EXPECT_EQ((*prompts)[0].temperature, 0);
  EXPECT_EQ((*prompts)[1].kind, "free");
  EXPECT_EQ((*prompts)[1].temperature, 0.8);
}

TEST(ParseSpeculationPromptsTest, MistakesAreNamed) {
  const auto message = [](const std::string& lines) {
    return std::string(ParseSpeculationPrompts(lines).status().message());
  };
  const std::string good = "{\"kind\": \"a\", \"prompt\": \"b\"}\n";
  EXPECT_EQ(message(""), "there are no prompts");
  for (const char* line :
       {"", "x", "[]", "{\"kind\": \"a\"}", "{\"kind\": 1, \"prompt\": \"b\"}"}) {
    EXPECT_THAT(message(good + line + "\n"), HasSubstr("line 2: expected an object")) << line;
  }
  EXPECT_THAT(message("{\"kind\": \"a\", \"prompt\": \"b\", \"temperature\": -1}"),
              HasSubstr("line 1: temperature is -1, expected a number from 0 on"));
}

TEST(BenchSpeculationTest, GivesARateAndARatioForEachKind) {
  Machine machine{.backend = MakeCpuBackend({.threads = 1}), .name = "test"};
  machine.measure_ceilings = [](OfRuns) { return Ceilings{1, 1e15, 1e18, 1e18}; };
  const std::vector<TracedStep> lucky = {{.drafted = 3, .accepted = 3},
                                         {.drafted = 7, .accepted = 1}};
  SpeculationBenchmark benchmark{.config = TinyConfig(), .weights = DType::kF32, .repeats = 2};
  benchmark.traces = {{.kind = "a", .prompt = 12, .steps = lucky},
                      {.kind = "b", .prompt = 80, .steps = std::vector<TracedStep>(4)},
                      {.kind = "a", .prompt = 20, .steps = lucky}};
  const auto report = BenchSpeculation(machine, benchmark);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->results, SizeIs(4));
  EXPECT_EQ(report->results[0].name, "a, one by one");
  EXPECT_EQ(report->results[0].length, 16);
  EXPECT_EQ(report->results[1].name, "a, drafts");
  EXPECT_EQ(report->results[1].limit, 3);  // 12 tokens in 4 steps
  EXPECT_EQ(report->results[3].limit, 1);
  for (const BenchResult& result : report->results) EXPECT_GT(result.value, 0) << result.name;
}

}  // namespace
}  // namespace hippodrome::bench_speculation_test
