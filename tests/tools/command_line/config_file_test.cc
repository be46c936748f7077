#include "tools/command_line/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/text_file.h"

namespace hippodrome::config_file_test {
namespace {

using testing::HasSubstr;

class ConfigFileTest : public testing::Test {
 protected:
  static const CommandSpec& Spec() {
    static const CommandSpec* const spec =
        new CommandSpec{.name = "test",
                        .options = {{"count", "N", "", "1"},
                                    {"share", "X", "", "1"},
                                    {"name", "TEXT", "", "", true},
                                    {"loud", "", ""},
                                    {"version", "", ""},
                                    ConfigOption()}};
    return *spec;
  }

  // The arguments, completed by a file with `text`.
  absl::StatusOr<CommandLine> Read(const std::string& text,
                                   std::vector<std::string> arguments = {}) {
    EXPECT_TRUE(WriteTextFile(path_, text).ok());
    arguments.insert(arguments.begin(), {"test", "--config", path_});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    return CommandLine::Parse(static_cast<int>(argv.size()), argv.data(), Spec())
        .value()
        .WithConfigFile();
  }
  std::string ErrorOf(const std::string& text) {
    const absl::Status status = Read(text).status();
    EXPECT_TRUE(IsUsage(status)) << text << ": " << status;
    return Message(status);
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.File("c.json");
};

TEST_F(ConfigFileTest, HasOptionsByName) {
  const auto line = Read(R"({"count": 7, "share": 0.25, "name": ["a", "b"], "loud": true})");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(*line->Integer("count", 0, 10), 7);
  EXPECT_EQ(*line->Number("share", 0, 1), 0.25);
  EXPECT_EQ(line->All("name"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(line->Has("loud"));
}

TEST_F(ConfigFileTest, TextsStandForNumbersAndASingleOneForAnArray) {
  const auto line = Read(R"({"count": "7", "name": "a", "loud": false})");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(*line->Integer("count", 0, 10), 7);
  EXPECT_EQ(line->All("name"), std::vector<std::string>{"a"});
  EXPECT_FALSE(line->Has("loud"));
}

TEST_F(ConfigFileTest, TheCommandLineComesFirst) {
  const auto line = Read(R"({"count": 7, "name": ["a", "b"]})", {"--name", "c"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->All("name"), std::vector<std::string>{"c"});
  EXPECT_EQ(*line->Integer("count", 0, 10), 7);
}

TEST_F(ConfigFileTest, ErrorsNameFileAndMember) {
  EXPECT_EQ(ErrorOf(R"({"cuont": 1})"), path_ + ": \"cuont\" is no option that a file may have");
  EXPECT_THAT(ErrorOf(R"({"config": "x"})"), HasSubstr("\"config\" is no option"));
  EXPECT_THAT(ErrorOf(R"({"version": true})"), HasSubstr("\"version\" is no option"));
  EXPECT_EQ(ErrorOf(R"({"count": [1, 2]})"),
            path_ + ": \"count\" is [1,2], expected a string or a number");
  EXPECT_EQ(ErrorOf(R"({"count": null})"),
            path_ + ": \"count\" is null, expected a string or a number");
  EXPECT_EQ(ErrorOf(R"({"name": ["a", {}]})"),
            path_ + ": \"name\" is {}, expected strings or numbers");
  EXPECT_EQ(ErrorOf(R"({"loud": 1})"), path_ + ": \"loud\" is 1, expected true or false");
  EXPECT_EQ(ErrorOf(R"({"count": 1, "count": 2})"), path_ + ": \"count\" is there twice");
  EXPECT_THAT(ErrorOf("{"), HasSubstr(path_ + ": not valid JSON"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr(path_ + ": expected a JSON object"));
}

TEST_F(ConfigFileTest, ValuesHaveTheirRanges) {
  const auto line = Read(R"({"count": 7.5})");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(Message(line->Integer("count", 0, 10).status()),
            path_ + ": \"count\" is '7.5', expected an integer in [0, 10]");
}

TEST_F(ConfigFileTest, AFileThatIsNotThereIsAnError) {
  std::vector<std::string> arguments = {"test", "--config", path_ + ".no"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const auto line = CommandLine::Parse(3, argv.data(), Spec());
  EXPECT_THAT(Message(line->WithConfigFile().status()), HasSubstr(path_ + ".no"));
}

TEST_F(ConfigFileTest, DifferencesAreOfValues) {
  const auto old = Read(R"({"count": 1, "name": ["a"]})");
  const auto now = Read(R"({"name": ["a", "b"], "loud": true})");
  EXPECT_EQ(old->Differences(*now), (std::vector<std::string>{"loud", "name"}));
  EXPECT_TRUE(old->Differences(*old).empty());
}

}  // namespace
}  // namespace hippodrome::config_file_test
