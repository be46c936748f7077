#ifndef HIPPODROME_SERVER_SERVE_COMMAND_H_
#define HIPPODROME_SERVER_SERVE_COMMAND_H_

namespace hippodrome {

// Runs `hippodrome serve` until SIGTERM or SIGINT; argv[0] is the command's own name. A second
// signal ends the grace period. Returns 0 after a signal, 1 for an error (one line on stderr), 2
// for a usage error.
int ServeCommand(int argc, char** argv);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_SERVE_COMMAND_H_
