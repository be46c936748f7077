#include "tools/command_line/command_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/status.h"

namespace hippodrome::command_line_test {
namespace {

const CommandSpec kSpec = {.name = "test",
                           .summary = "Tests.",
                           .usage = {"FILE"},
                           .description = "",
                           .arguments = {{"FILE", "one"}, {"OTHER", "another", true}},
                           .options = {{"name", "TEXT", ""},
                                       {"count", "N", "", "1"},
                                       {"share", "X", "", "1"},
                                       {"kind", "tall|small|N", ""},
                                       WeightsOption(),
                                       H3StateOption(),
                                       DeviceOption("cuda"),
                                       ThreadsOption(),
                                       PinOption(),
                                       NumaNodeOption(),
                                       {"loud", "", ""}}};

absl::StatusOr<CommandLine> Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "test");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return CommandLine::Parse(static_cast<int>(argv.size()), argv.data(), kSpec);
}

TEST(CommandLineTest, ReadsBothFormsOfAnOption) {
  const auto line = Parse({"--name", "a", "file", "--name=b", "--loud"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->positional(), std::vector<std::string>{"file"});
  EXPECT_EQ(line->All("name"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*line->Required("name"), "b");
  EXPECT_TRUE(line->Has("loud"));
  EXPECT_EQ(line->text(), "test --name a file --name=b --loud");
  EXPECT_FALSE(line->Has("count"));
  EXPECT_TRUE(IsUsage(line->Required("count").status()));
}

TEST(CommandLineTest, RefusesWhatItDoesNotKnow) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"file", "--what", "1"},
                                                                     {"file", "--name"},
                                                                     {"file", "--loud=1"},
                                                                     {},
                                                                     {"a", "b", "c"}}) {
    EXPECT_TRUE(IsUsage(Parse(arguments).status()));
  }
}

TEST(CommandLineTest, ChecksNumbers) {
  const auto with = [](const std::string& option) { return *Parse({"file", option}); };
  EXPECT_EQ(*with("--count=7").Integer("count", 0, 10), 7);
  EXPECT_EQ(*with("--name=x").Integer("count", 0, 10), 1);
  EXPECT_EQ(*with("--name=x").Integer("count", 5, 0, 10), 5);
  EXPECT_EQ(*with("--count=7").Integer("count", 5, 0, 10), 7);
  EXPECT_DOUBLE_EQ(*with("--share=0.25").Number("share", 0, 1), 0.25);
  EXPECT_EQ(Message(with("--loud").Integer("name", 0, 1).status()), "--name is required");
  for (const char* bad : {"--count=", "--count=7x", "--count=11", "--count=-1", "--count=1e3",
                          "--count=99999999999999999999"}) {
    EXPECT_TRUE(IsUsage(with(bad).Integer("count", 0, 10).status())) << bad;
  }
  for (const char* bad : {"--share=nan", "--share=inf", "--share=1.1", "--share=", "--share=0,5"}) {
    EXPECT_TRUE(IsUsage(with(bad).Number("share", 0, 1).status())) << bad;
  }
}

TEST(CommandLineTest, ChoosesAmongAlternatives) {
  EXPECT_EQ(*Parse({"file", "--kind=tall"})->Choice("kind"), "tall");
  EXPECT_EQ(Message(Parse({"file", "--kind", "wide"})->Choice("kind").status()),
            "--kind is 'wide', expected tall, small or N");
  EXPECT_EQ(Message(Parse({"file", "--kind="})->Choice("kind").status()),
            "--kind is '', expected tall, small or N");
  EXPECT_EQ(Message(Parse({"file"})->Choice("kind").status()), "--kind is required");
  EXPECT_EQ(*Parse({"file"})->Device(), DeviceChoice::kCuda);
  EXPECT_EQ(*Parse({"file", "--device", "auto"})->Device(), DeviceChoice::kAuto);
}

TEST(CommandLineTest, ReadsWhereThreadsRun) {
  CpuPlacement placement = *Parse({"file"})->Placement();
  EXPECT_EQ(placement.threads, 0);
  EXPECT_FALSE(placement.pin);
  EXPECT_FALSE(placement.numa_node.has_value());
  placement = *Parse({"file", "--pin", "--numa-node=1", "--threads", "3"})->Placement();
  EXPECT_EQ(placement.threads, 3);
  EXPECT_TRUE(placement.pin);
  EXPECT_EQ(placement.numa_node, 1);
  EXPECT_TRUE(IsUsage(Parse({"file", "--numa-node=a"})->Placement().status()));
  EXPECT_EQ(Parse({"file", "--threads=2"})->PlaceThreads()->threads, 2);
}

TEST(CommandLineTest, ProcessesOfAJobAreNotPlaced) {
  EXPECT_TRUE(Parse({"file", "--threads=2"})->RefusePlacement().ok());
  EXPECT_TRUE(IsUsage(Parse({"file", "--pin"})->RefusePlacement()));
  EXPECT_EQ(Message(Parse({"file", "--numa-node=0"})->RefusePlacement()),
            "--numa-node is for one process: mpirun places its own (--map-by numa --bind-to numa)");
}

TEST(CommandLineTest, ReadsTheTypeOfStates) {
  EXPECT_EQ(*Parse({"file"})->H3State(), DType::kF32);
  EXPECT_EQ(*Parse({"file", "--h3-state=f32"})->H3State(), DType::kF32);
  EXPECT_EQ(*Parse({"file", "--h3-state", "bf16"})->H3State(), DType::kBF16);
  const absl::Status refused = Parse({"file", "--h3-state", "int8"})->H3State().status();
  EXPECT_TRUE(IsUsage(refused));
  EXPECT_EQ(Message(refused), "--h3-state is 'int8', expected f32 or bf16");
}

TEST(CommandLineTest, ReadsWeights) {
  EXPECT_EQ(**Parse({"file", "--weights", "bf16"})->Weights(), DType::kBF16);
  EXPECT_EQ(**Parse({"file", "--weights", "int8"})->Weights(), DType::kI8);
  EXPECT_EQ(**Parse({"file", "--weights", "int4"})->Weights(), DType::kI4);
  EXPECT_EQ(**Parse({"file", "--weights", "f32"})->Weights(), DType::kF32);
  EXPECT_FALSE(Parse({"file"})->Weights()->has_value());
  EXPECT_TRUE(IsUsage(Parse({"file", "--weights", "int2"})->Weights().status()));
}

TEST(CommandLineTest, OutcomesBecomeExitCodes) {
  char name[] = "test", file[] = "file", help[] = "--help";
  char* with_file[] = {name, file};
  char* without[] = {name};
  char* asking[] = {name, help};
  const auto give = [](absl::Status status) {
    return [status](const CommandLine&) { return status; };
  };
  EXPECT_EQ(RunCommand(2, with_file, kSpec, give(absl::OkStatus())), 0);
  EXPECT_EQ(RunCommand(2, with_file, kSpec, give(InvalidArgument("bad file"))), 1);
  EXPECT_EQ(RunCommand(2, with_file, kSpec, give(Usage("bad option"))), 2);
  EXPECT_EQ(RunCommand(1, without, kSpec, give(absl::OkStatus())), 2);
  EXPECT_EQ(RunCommand(2, asking, kSpec, give(InvalidArgument("not reached"))), 0);
}

}  // namespace
}  // namespace hippodrome::command_line_test
