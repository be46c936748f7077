// `hippodrome export`.
#ifndef HIPPODROME_TOOLS_CONVERT_EXPORT_COMMAND_H_
#define HIPPODROME_TOOLS_CONVERT_EXPORT_COMMAND_H_

namespace hippodrome {

// argv[0] is the subcommand's name. Returns the exit code: 0 success, 1 failure with one line on
// stderr, 2 usage error.
int ExportCommand(int argc, char** argv);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_EXPORT_COMMAND_H_
