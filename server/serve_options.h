// The command line of `hippodrome serve`.
#ifndef HIPPODROME_SERVER_SERVE_OPTIONS_H_
#define HIPPODROME_SERVER_SERVE_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/load_model.h"
#include "server/options.h"

namespace hippodrome {

enum class Device : uint8_t { kAuto, kCpu, kCuda };

struct ModelSource {
  std::string name;
  std::string directory;
};

struct ServeOptions {
  std::vector<ModelSource> models;  // names differ
  Device device = Device::kAuto;
  LoadOptions load;
  ServerOptions server;
};

extern const char kServeUsage[];

// `arguments` are those after "serve": "--name value" or "--name=value". Errors: kInvalidArgument
// naming the option, its value and what was expected.
absl::StatusOr<ServeOptions> ParseServeOptions(const std::vector<std::string>& arguments);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_SERVE_OPTIONS_H_
