#include <cstdio>
#include <string>

#include "engine/base/status.h"
#include "server/access/key_file.h"
#include "server/access/key_secret.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/subcommand.h"
#include "tools/commands/commands.h"

namespace hippodrome {
namespace {

const CommandSpec kNewSpec = {
    .name = "key new",
    .summary = "Makes an API key for serve --api-keys.",
    .usage = {"--name NAME [--admin]"},
    .description =
        "Prints two lines: the secret, which the caller sends as 'Authorization: Bearer SECRET' "
        "and "
        "which is kept nowhere; and what stands for it under \"keys\" in the file, a hash. To "
        "change "
        "the secret of a key, add the new entry's {\"sha256\"} to its \"secrets\", and take the "
        "old "
        "one out when nobody uses it any more.",
    .options = {{"name", "NAME", "of the key, in logs and metrics: 1 to 64 of A-Z a-z 0-9 . _ -"},
                {"admin", "", "it may do what the admin listener offers"}}};

absl::Status New(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string name, line.Required("name"));
  if (!CheckKeyName(name).ok()) return Usage("--" + Message(CheckKeyName(name)));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string secret, NewSecret());
  const std::string entry = KeyEntry(name, DigestOf(secret), line.Has("admin"));
  std::printf("%s\n%s\n", secret.c_str(), entry.c_str());
  return absl::OkStatus();
}

int NewKey(int argc, char** argv) { return RunCommand(argc, argv, kNewSpec, New); }

constexpr Subcommand kKeyCommands[] = {
    {"new", "make an API key", NewKey},
};

}  // namespace

int KeyCommand(int argc, char** argv) {
  return RunSubcommand({.name = "hippodrome key",
                        .summary = "Makes API keys for callers of the server.",
                        .commands = kKeyCommands,
                        .version = ""},
                       argc, argv);
}

}  // namespace hippodrome
