// What all commands that evaluate encoders share.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_ENCODER_COMMAND_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_ENCODER_COMMAND_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/command_line/help.h"

namespace hippodrome {

// Adds to a command's options, between those of its data and the rest, those of every encoder.
inline CommandSpec EncoderCommand(CommandSpec spec) {
  spec.options.insert(spec.options.begin(), ModelOption());
  for (Option option : {Option{"pad-to", "N",
                               "tokens that inputs are padded to; 0: not at all (default: as the "
                               "model's config.json says)"},
                        WeightsOption(), DeviceOption(), ThreadsOption(), PinOption(),
                        NumaNodeOption(), JsonOption()}) {
    spec.options.push_back(std::move(option));
  }
  return spec;
}

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_ENCODER_COMMAND_H_
