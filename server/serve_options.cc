#include "server/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "engine/status.h"
#include "server/address.h"

namespace hippodrome {

const char kServeUsage[] =
    "usage: hippodrome serve --model [NAME=]DIR ... [options]\n"
    "  --model [NAME=]DIR   a model directory; NAME defaults to its last component; repeatable\n"
    "  --http HOST:PORT     default 127.0.0.1:8080; port 0: any free one\n"
    "  --grpc HOST:PORT     default 127.0.0.1:50051\n"
    "  --device DEVICE      auto (default), cpu or cuda\n"
    "  --weights DTYPE      f32 or bf16; default: as stored\n"
    "  --threads N          that do arithmetic; default: one per core\n"
    "  --max-sequences N    that run at once, per model; default 64\n"
    "  --kv-bytes N         for the keys and values of attention layers, per model; default 1 GiB\n"
    "  --max-queue N        requests that wait, per model; default 256\n"
    "  --max-stall-ms N     that prompts may delay running streams; default 50\n"
    "  --grace-seconds N    for running streams after SIGTERM; default 30\n";

namespace {

absl::StatusOr<int64_t> ParseInteger(const std::string& option, const std::string& text,
                                     int64_t least, int64_t most) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc() && rest == end && value >= least && value <= most) return value;
  return InvalidArgument(
      fmt::format("{}: '{}' is not an integer in [{}, {}]", option, text, least, most));
}

absl::Status ParseModel(const std::string& text, ServeOptions& options) {
  ModelSource source;
  const size_t equals = text.find('=');
  if (equals != std::string::npos) {
    source.name = text.substr(0, equals);
    source.directory = text.substr(equals + 1);
  } else {
    source.directory = text;
    const size_t last = text.find_last_not_of('/');
    const std::string path = text.substr(0, last == std::string::npos ? 0 : last + 1);
    source.name = path.substr(path.find_last_of('/') + 1);
  }
  if (source.name.empty() || source.directory.empty()) {
    return InvalidArgument("--model: '" + text + "' is not [NAME=]DIR");
  }
  for (const ModelSource& other : options.models) {
    if (other.name == source.name) {
      return InvalidArgument("--model: there are two models named '" + source.name +
                             "': give one another NAME=");
    }
  }
  options.models.push_back(std::move(source));
  return absl::OkStatus();
}

template <typename Value>
absl::Status ParseChoice(const std::string& option, const std::string& text,
                         const std::map<std::string, Value>& choices, Value& value) {
  const auto it = choices.find(text);
  if (it != choices.end()) {
    value = it->second;
    return absl::OkStatus();
  }
  std::string names;
  for (const auto& [name, unused] : choices) names += (names.empty() ? "" : ", ") + name;
  return InvalidArgument(option + ": '" + text + "' is none of " + names);
}

absl::Status ParseAddressOption(const std::string& option, const std::string& text,
                                std::string& address) {
  absl::StatusOr<HostPort> parsed = ParseAddress(text);
  if (!parsed.ok()) return InvalidArgument(option + ": " + Message(parsed.status()));
  address = text;
  return absl::OkStatus();
}

absl::Status ParseLoadOption(const std::string& option, const std::string& text,
                             LoadOptions& load) {
  if (option == "--weights") {
    DType dtype = DType::kF32;
    HIPPODROME_RETURN_IF_ERROR(
        ParseChoice<DType>(option, text, {{"f32", DType::kF32}, {"bf16", DType::kBF16}}, dtype));
    load.weights = dtype;
  } else if (option == "--threads") {
    HIPPODROME_ASSIGN_OR_RETURN(const int64_t threads, ParseInteger(option, text, 0, 1024));
    load.threads = static_cast<int>(threads);
  } else if (option == "--max-sequences") {
    HIPPODROME_ASSIGN_OR_RETURN(load.generator.max_sequences,
                                ParseInteger(option, text, 1, 1 << 16));
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(load.generator.key_value_bytes,
                                ParseInteger(option, text, 0, int64_t{1} << 50));
  }
  return absl::OkStatus();
}

absl::Status ParseServerOption(const std::string& option, const std::string& text,
                               ServerOptions& server) {
  if (option == "--http") return ParseAddressOption(option, text, server.http.address);
  if (option == "--grpc") return ParseAddressOption(option, text, server.grpc.address);
  if (option == "--max-queue") {
    HIPPODROME_ASSIGN_OR_RETURN(server.batcher.max_queue, ParseInteger(option, text, 1, 1000000));
  } else if (option == "--max-stall-ms") {
    HIPPODROME_ASSIGN_OR_RETURN(const int64_t stall, ParseInteger(option, text, 1, 60000));
    server.batcher.max_stall = std::chrono::milliseconds(stall);
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(const int64_t grace, ParseInteger(option, text, 0, 3600));
    server.grace = std::chrono::seconds(grace);
  }
  return absl::OkStatus();
}

absl::Status ParseOption(const std::string& option, const std::string& text,
                         ServeOptions& options) {
  if (option == "--model") return ParseModel(text, options);
  if (option == "--device") {
    return ParseChoice<Device>(
        option, text, {{"auto", Device::kAuto}, {"cpu", Device::kCpu}, {"cuda", Device::kCuda}},
        options.device);
  }
  for (const char* name : {"--weights", "--threads", "--max-sequences", "--kv-bytes"}) {
    if (option == name) return ParseLoadOption(option, text, options.load);
  }
  for (const char* name :
       {"--http", "--grpc", "--max-queue", "--max-stall-ms", "--grace-seconds"}) {
    if (option == name) return ParseServerOption(option, text, options.server);
  }
  return InvalidArgument("there is no option " + option);
}

}  // namespace

absl::StatusOr<ServeOptions> ParseServeOptions(const std::vector<std::string>& arguments) {
  ServeOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    if (argument.rfind("--", 0) == 0 && equals != std::string::npos) {
      HIPPODROME_RETURN_IF_ERROR(
          ParseOption(argument.substr(0, equals), argument.substr(equals + 1), options));
    } else if (i + 1 < arguments.size()) {
      HIPPODROME_RETURN_IF_ERROR(ParseOption(argument, arguments[++i], options));
    } else {
      return InvalidArgument("option " + argument + " does not exist or lacks its value");
    }
  }
  if (options.models.empty()) return InvalidArgument("--model is missing");
  return options;
}

}  // namespace hippodrome
