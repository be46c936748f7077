// Arguments of a command: --name value, --name=value, --switch, and positional ones.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_COMMAND_LINE_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_COMMAND_LINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/make_backend.h"
#include "tools/command_line/help.h"
#include "tools/machine/cpu_placement.h"

namespace hippodrome {

// Parsed arguments. The getters take names that the command's CommandSpec has, and return a usage
// error naming the option, its text and what was expected.
class CommandLine {
 public:
  // argv[0] is the command's last word. Repeated options keep every value, in order.
  static absl::StatusOr<CommandLine> Parse(int argc, char** argv, const CommandSpec& spec);

  // Completed by the file of ConfigOption(), where that was given: what the line has itself comes
  // first. Errors: those of ReadConfigFile().
  absl::StatusOr<CommandLine> WithConfigFile() const;

  // Whether it was given.
  bool Has(const std::string& name) const { return given_.contains(name); }
  const std::vector<std::string>& positional() const { return positional_; }
  // The command and its arguments as they were typed, for the record.
  const std::string& text() const { return text_; }

  // How errors call an option: "--name", or "FILE: "name"" where it came from a file.
  std::string Called(const std::string& name) const;
  // The options whose values differ from those of `other`, a line of the same command.
  std::vector<std::string> Differences(const CommandLine& other) const;

  // As it was given.
  absl::StatusOr<std::string> Required(const std::string& name) const;
  std::vector<std::string> All(const std::string& name) const;
  // As it was given, else its default; empty where it has none.
  std::string Text(const std::string& name) const;
  // The same, but an error where it is empty and was not given: one of the option's alternatives,
  // or a number in [least, most].
  absl::StatusOr<std::string> Choice(const std::string& name) const;
  absl::StatusOr<int64_t> Integer(const std::string& name, int64_t least, int64_t most) const;
  absl::StatusOr<double> Number(const std::string& name, double least, double most) const;
  // In any range: that is for what takes the value to say.
  absl::StatusOr<double> Number(const std::string& name) const;
  // For an option whose default is computed.
  absl::StatusOr<int64_t> Integer(const std::string& name, int64_t fallback, int64_t least,
                                  int64_t most) const;
  // What the options of help.h below give: nothing for weights as stored, 0 threads for one per
  // core.
  absl::StatusOr<std::optional<DType>> Weights() const;
  absl::StatusOr<int> Threads() const;
  absl::StatusOr<CpuPlacement> Placement() const;
  // PlaceThreads() of the last one.
  absl::StatusOr<CpuOptions> PlaceThreads() const;
  // Usage errors where --pin or --numa-node is given: several processes do not know of each
  // other's.
  absl::Status RefusePlacement() const;
  absl::StatusOr<int64_t> AttentionWindow() const;
  absl::StatusOr<DType> H3State() const;
  // Usage errors where both --speculate and --draft are given.
  absl::Status CheckDrafts() const;
  absl::StatusOr<DeviceChoice> Device() const;

 private:
  absl::StatusOr<std::string> Value(const std::string& name) const;

  std::map<std::string, Option> options_;
  std::map<std::string, std::vector<std::string>> given_;
  std::set<std::string> from_file_;  // of these
  std::vector<std::string> positional_;
  std::string text_;
};

// One line on stderr, which names the command, and exit code 1.
int Failure(const CommandSpec& spec, const absl::Status& status);
// The same, then how the command is used, and exit code 2.
int UsageError(const CommandSpec& spec, const absl::Status& status);

// Whether an argument is --help or -h; the help on stdout, and exit code 0.
bool AsksForHelp(int argc, char** argv);
int PrintHelp(const CommandSpec& spec);

// Marks an error as one of usage, so that RunCommand() exits with 2; and asks for the mark.
absl::Status Usage(const std::string& message);
bool IsUsage(const absl::Status& status);

// Runs `body`, a function of the parsed CommandLine that returns absl::Status, and maps the outcome
// to an exit code: 0 for success, 2 for a usage error, else 1. --help prints the help and gives 0.
template <typename Body>
int RunCommand(int argc, char** argv, const CommandSpec& spec, const Body& body) {
  if (AsksForHelp(argc, argv)) return PrintHelp(spec);
  absl::StatusOr<CommandLine> arguments = CommandLine::Parse(argc, argv, spec);
  if (!arguments.ok()) return UsageError(spec, arguments.status());
  const absl::Status status = body(*arguments);
  if (status.ok()) return 0;
  return IsUsage(status) ? UsageError(spec, status) : Failure(spec, status);
}

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_COMMAND_LINE_H_
