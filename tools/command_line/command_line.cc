#include "tools/command_line/command_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr char kUsageMark[] = "hippodrome/usage";

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <typename T>
bool ParseWhole(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

}  // namespace

absl::Status Usage(const std::string& message) {
  absl::Status status = InvalidArgument(message);
  status.SetPayload(kUsageMark, absl::Cord());
  return status;
}

bool IsUsage(const absl::Status& status) { return status.GetPayload(kUsageMark).has_value(); }

bool AsksForHelp(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* argument) {
    return std::strcmp(argument, "--help") == 0 || std::strcmp(argument, "-h") == 0;
  });
}

int PrintUsage(const CommandSpec& spec) {
  std::printf("%s\n", spec.usage.c_str());
  return 0;
}

int Failure(const std::string& command, const absl::Status& status) {
  std::fprintf(stderr, "hippodrome %s: %s\n", command.c_str(), Message(status).c_str());
  return 1;
}

int UsageError(const CommandSpec& spec, const absl::Status& status) {
  std::fprintf(stderr, "%s\n%s\n", Message(status).c_str(), spec.usage.c_str());
  return 2;
}

absl::StatusOr<CommandLine> CommandLine::Parse(int argc, char** argv, const CommandSpec& spec) {
  CommandLine line;
  line.text_ = argv[0];
  for (int i = 1; i < argc; ++i) line.text_ += std::string(" ") + argv[i];
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (!argument.starts_with("--")) {
      line.positional_.push_back(std::move(argument));
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (Contains(spec.switches, name)) {
      if (equals != std::string::npos) return Usage("--" + name + " takes no value");
      line.options_[name].emplace_back();
    } else if (!Contains(spec.values, name)) {
      return Usage("unknown option --" + name);
    } else if (equals != std::string::npos) {
      line.options_[name].push_back(argument.substr(equals + 1));
    } else if (i + 1 < argc) {
      line.options_[name].emplace_back(argv[++i]);
    } else {
      return Usage("--" + name + " needs a value");
    }
  }
  if (line.positional_.size() != spec.positional) {
    return Usage("expected " + std::to_string(spec.positional) + " argument(s), got " +
                 std::to_string(line.positional_.size()));
  }
  return line;
}

absl::StatusOr<std::string> CommandLine::Required(const std::string& name) const {
  if (!Has(name)) return Usage("--" + name + " is required");
  return options_.at(name).back();
}

std::string CommandLine::Text(const std::string& name, const std::string& fallback) const {
  return Has(name) ? options_.at(name).back() : fallback;
}

std::vector<std::string> CommandLine::All(const std::string& name) const {
  return Has(name) ? options_.at(name) : std::vector<std::string>();
}

absl::StatusOr<int64_t> CommandLine::Integer(const std::string& name, int64_t fallback,
                                             int64_t least, int64_t most) const {
  if (!Has(name)) return fallback;
  const std::string& text = options_.at(name).back();
  int64_t value = 0;
  if (!ParseWhole(text, value) || value < least || value > most) {
    return Usage("--" + name + " is '" + text + "', expected an integer in [" +
                 std::to_string(least) + ", " + std::to_string(most) + "]");
  }
  return value;
}

absl::StatusOr<double> CommandLine::Number(const std::string& name, double fallback, double least,
                                           double most) const {
  if (!Has(name)) return fallback;
  const std::string& text = options_.at(name).back();
  double value = 0;
  if (!ParseWhole(text, value) || !(value >= least && value <= most)) {
    return Usage("--" + name + " is '" + text + "', expected a number in [" +
                 std::to_string(least) + ", " + std::to_string(most) + "]");
  }
  return value;
}

absl::StatusOr<std::optional<DType>> CommandLine::Weights() const {
  if (!Has("weights")) return std::nullopt;
  const std::string text = Text("weights", "");
  if (text == "f32") return DType::kF32;
  if (text == "bf16") return DType::kBF16;
  return Usage("--weights is '" + text + "', expected f32 or bf16");
}

absl::StatusOr<int> CommandLine::Threads() const {
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t threads, Integer("threads", 0, 0, 1024));
  return static_cast<int>(threads);
}

absl::StatusOr<DeviceChoice> CommandLine::Device() const {
  const std::string device = Text("device", "auto");
  if (device == "auto") return DeviceChoice::kAuto;
  if (device == "cpu") return DeviceChoice::kCpu;
  if (device == "cuda") return DeviceChoice::kCuda;
  return Usage("--device is '" + device + "', expected auto, cpu or cuda");
}

}  // namespace hippodrome
