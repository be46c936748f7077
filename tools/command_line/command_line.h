// Arguments of a subcommand: --name value, --name=value, --switch, and positional ones.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_COMMAND_LINE_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_COMMAND_LINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/make_backend.h"

namespace hippodrome {

struct CommandSpec {
  std::string usage;                  // printed for --help and after a usage error
  std::vector<std::string> values;    // options that take a value, without dashes
  std::vector<std::string> switches;  // options that take none
  size_t positional = 0;              // positional arguments, exactly
};

// Parsed arguments. The getters return a usage error naming the option, its text and what was
// expected.
class CommandLine {
 public:
  // argv[0] is the subcommand's name. Repeated options keep every value, in order.
  static absl::StatusOr<CommandLine> Parse(int argc, char** argv, const CommandSpec& spec);

  bool Has(const std::string& name) const { return options_.contains(name); }
  const std::vector<std::string>& positional() const { return positional_; }
  // The subcommand and its arguments as they were typed, for the record.
  const std::string& text() const { return text_; }

  absl::StatusOr<std::string> Required(const std::string& name) const;
  std::string Text(const std::string& name, const std::string& fallback) const;
  std::vector<std::string> All(const std::string& name) const;
  absl::StatusOr<int64_t> Integer(const std::string& name, int64_t fallback, int64_t least,
                                  int64_t most) const;
  absl::StatusOr<double> Number(const std::string& name, double fallback, double least,
                                double most) const;
  // --weights f32|bf16; nothing when absent.
  absl::StatusOr<std::optional<DType>> Weights() const;
  // --threads N, 0 for one per core.
  absl::StatusOr<int> Threads() const;
  // --device auto|cpu|cuda; auto when absent.
  absl::StatusOr<DeviceChoice> Device() const;

 private:
  std::map<std::string, std::vector<std::string>> options_;
  std::vector<std::string> positional_;
  std::string text_;
};

// One line on stderr and exit code 1.
int Failure(const std::string& command, const absl::Status& status);
// The message and the usage on stderr, and exit code 2.
int UsageError(const CommandSpec& spec, const absl::Status& status);

// Whether an argument is --help or -h; the usage on stdout, and exit code 0.
bool AsksForHelp(int argc, char** argv);
int PrintUsage(const CommandSpec& spec);

// Marks an error as one of usage, so that RunCommand() exits with 2; and asks for the mark.
absl::Status Usage(const std::string& message);
bool IsUsage(const absl::Status& status);

// Runs `body`, a function of the parsed CommandLine that returns absl::Status, and maps the outcome
// to an exit code: 0 for success, 2 for a usage error, else 1. --help prints the usage and gives 0.
template <typename Body>
int RunCommand(int argc, char** argv, const CommandSpec& spec, const Body& body) {
  if (AsksForHelp(argc, argv)) return PrintUsage(spec);
  absl::StatusOr<CommandLine> arguments = CommandLine::Parse(argc, argv, spec);
  if (!arguments.ok()) return UsageError(spec, arguments.status());
  const absl::Status status = body(*arguments);
  if (status.ok()) return 0;
  return IsUsage(status) ? UsageError(spec, status) : Failure(argv[0], status);
}

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_COMMAND_LINE_H_
