// What all commands that evaluate encoders share.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODER_COMMAND_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODER_COMMAND_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/command_line/command_line.h"

namespace hippodrome {

// A command of one positional argument, the task, with the options of every encoder besides its
// own. `synopsis` and `meaning` are the beginning and the end of its usage.
inline CommandSpec EncoderCommand(const std::string& synopsis, const std::string& meaning,
                                  std::vector<std::string> values = {},
                                  std::vector<std::string> switches = {}) {
  for (const char* name : {"model", "data", "pad-to", "weights", "device", "threads", "json"}) {
    values.emplace_back(name);
  }
  return {.usage = synopsis +
                   "  [--pad-to N] [--weights f32|bf16] [--device auto|cpu|cuda] [--threads N]\n"
                   "  [--json FILE]\n" +
                   meaning +
                   "\nInputs are padded as the model's config.json says, or to N tokens; 0: not at "
                   "all.\nFILE may be packed by gzip.",
          .values = std::move(values),
          .switches = std::move(switches),
          .positional = 1};
}

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODER_COMMAND_H_
