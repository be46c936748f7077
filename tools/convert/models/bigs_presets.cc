#include "tools/convert/models/bigs_presets.h"

#include "engine/base/status.h"

namespace hippodrome {
namespace {

struct Length {
  const char* name;
  int64_t positions;
};
constexpr Length kLengths[] = {{"bigs-128", 128}, {"bigs-512", 512}, {"bigs-4096", 4096}};

BigsConfig Published(int64_t positions) {
  BigsConfig config;
  config.hidden_size = 1024;
  config.num_hidden_layers = 23;
  config.max_position_embeddings = positions;
  config.pad_to = positions;
  return config;
}

}  // namespace

const std::string& BigsPresetNames() {
  static const auto* const names = new std::string("bigs-128|bigs-512|bigs-4096");
  return *names;
}

absl::StatusOr<BigsConfig> BigsPreset(const std::string& name) {
  for (const Length& length : kLengths) {
    if (name == length.name) return Published(length.positions);
  }
  return InvalidArgument("unknown preset '" + name + "'; expected " + BigsPresetNames());
}

}  // namespace hippodrome
