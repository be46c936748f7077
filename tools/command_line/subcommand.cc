#include "tools/command_line/subcommand.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <vector>

#include "tools/command_line/help.h"

namespace hippodrome {
namespace {

std::string GroupHelp(const CommandGroup& group) {
  std::vector<HelpEntry> commands;
  for (const Subcommand& command : group.commands) {
    commands.push_back({command.name, command.summary});
  }
  std::vector<HelpEntry> options = {HelpOptionEntry()};
  if (!group.version.empty()) options.push_back({"--version", "print the version and exit"});
  return HelpTitle(group.summary, {group.name + " COMMAND [OPTION]..."},
                   group.name + " COMMAND --help explains a command.") +
         HelpSection("Commands", commands) + HelpSection("Options", options) + HelpExitStatus();
}

const Subcommand* Find(std::span<const Subcommand> commands, const std::string& name) {
  for (const Subcommand& command : commands) {
    const std::vector<std::string> names = Alternatives(command.name);
    if (std::find(names.begin(), names.end(), name) != names.end()) return &command;
  }
  return nullptr;
}

// Libraries allocate where they must not throw. Where memory runs out there, the program cannot go
// on; it says why, and ends as after any other error.
[[noreturn]] void Terminate() noexcept {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    constexpr std::string_view kWhy =
        "hippodrome: out of memory where nothing less could be ended\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWhy.data(), kWhy.size());
    _exit(1);
  } catch (...) {
    // A fault of the program: a core tells more.
  }
  std::abort();
}

int Run(const CommandGroup& group, const Subcommand& command, int argc, char** argv) {
  try {
    return command.run(argc, argv);
  } catch (const std::exception& error) {  // out of memory, or a device that failed
    std::fprintf(stderr, "%s %s: %s\n", group.name.c_str(), argv[0], error.what());
    return 1;
  }
}

}  // namespace

int RunSubcommand(const CommandGroup& group, int argc, char** argv) {
  std::set_terminate(Terminate);
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(GroupHelp(group).c_str(), stdout);
    return 0;
  }
  if (name == "--version" && !group.version.empty()) {
    std::fputs(group.version.c_str(), stdout);
    return 0;
  }
  const Subcommand* command = Find(group.commands, name);
  if (command != nullptr) return Run(group, *command, argc - 1, argv + 1);
  const std::string wrong = name.empty() ? "no command is given" : "unknown command '" + name + "'";
  std::fprintf(stderr, "%s: %s\n\n%s", group.name.c_str(), wrong.c_str(), GroupHelp(group).c_str());
  return 2;
}

}  // namespace hippodrome
