#include "tools/command_line/command_line.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "engine/base/status.h"
#include "kernels/backend.h"
#include "tools/command_line/config_file.h"

namespace hippodrome {
namespace {

constexpr char kUsageMark[] = "hippodrome/usage";

template <typename T>
bool ParseWhole(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

// `text`, the value of the option `called` so, as a number in [least, most].
template <typename T>
absl::StatusOr<T> InRange(const std::string& called, const std::string& text, T least, T most,
                          const char* kind) {
  T value = 0;
  if (!ParseWhole(text, value) || !(value >= least && value <= most)) {
    return Usage(called + " is '" + text + "', expected " + kind + " in [" + std::to_string(least) +
                 ", " + std::to_string(most) + "]");
  }
  return value;
}

// "auto, cpu or cuda"
std::string Either(const std::vector<std::string>& words) {
  std::string out = words.front();
  for (size_t i = 1; i < words.size(); ++i) {
    out += (i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return out;
}

// "expected 1 argument(s)" or what else the command takes.
std::string ExpectedArguments(size_t least, size_t most) {
  const std::string range = least == most ? "" : std::to_string(least) + " or ";
  return "expected " + range + std::to_string(most) + " argument(s)";
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

int PrintHelp(const CommandSpec& spec) {
  std::fputs(HelpText(spec).c_str(), stdout);
  return 0;
}

int Failure(const CommandSpec& spec, const absl::Status& status) {
  std::fprintf(stderr, "hippodrome %s: %s\n", spec.name.c_str(), Message(status).c_str());
  return 1;
}

int UsageError(const CommandSpec& spec, const absl::Status& status) {
  Failure(spec, status);
  for (const std::string& form : spec.usage) {
    std::fprintf(stderr, "usage: hippodrome %s %s\n", spec.name.c_str(), form.c_str());
  }
  std::fprintf(stderr, "hippodrome %s --help says more\n", spec.name.c_str());
  return 2;
}

absl::StatusOr<CommandLine> CommandLine::Parse(int argc, char** argv, const CommandSpec& spec) {
  CommandLine line;
  for (const Option& option : spec.options) line.options_.emplace(option.name, option);
  line.text_ = spec.name;
  for (int i = 1; i < argc; ++i) line.text_ += std::string(" ") + argv[i];
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (!argument.starts_with("--")) {
      line.positional_.push_back(std::move(argument));
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    const auto option = line.options_.find(name);
    if (option == line.options_.end()) return Usage("unknown option --" + name);
    if (option->second.value.empty()) {
      if (equals != std::string::npos) return Usage("--" + name + " takes no value");
      line.given_[name].emplace_back();
    } else if (equals != std::string::npos) {
      line.given_[name].push_back(argument.substr(equals + 1));
    } else if (i + 1 < argc) {
      line.given_[name].emplace_back(argv[++i]);
    } else {
      return Usage("--" + name + " needs a value");
    }
  }
  const size_t most = spec.arguments.size();
  const size_t least = most - static_cast<size_t>(std::count_if(
                                  spec.arguments.begin(), spec.arguments.end(),
                                  [](const Argument& argument) { return argument.optional; }));
  const bool any = most > 0 && spec.arguments.back().repeatable;
  if (line.positional_.size() < least || (line.positional_.size() > most && !any)) {
    return Usage(ExpectedArguments(least, most) + ", got " +
                 std::to_string(line.positional_.size()));
  }
  return line;
}

absl::StatusOr<CommandLine> CommandLine::WithConfigFile() const {
  const std::string config = ConfigOption().name;
  CommandLine whole = *this;
  if (!Has(config)) return whole;
  HIPPODROME_ASSIGN_OR_RETURN(auto values, ReadConfigFile(Text(config), options_));
  for (auto& [name, texts] : values) {
    if (whole.given_.emplace(name, std::move(texts)).second) whole.from_file_.insert(name);
  }
  return whole;
}

std::string CommandLine::Called(const std::string& name) const {
  if (!from_file_.contains(name)) return "--" + name;
  return Text(ConfigOption().name) + ": \"" + name + "\"";
}

std::vector<std::string> CommandLine::Differences(const CommandLine& other) const {
  std::vector<std::string> names;
  for (const auto& [name, option] : options_) {
    const bool same = Has(name) && other.Has(name) ? All(name) == other.All(name)
                                                   : !option.repeatable && !option.value.empty() &&
                                                         Text(name) == other.Text(name);
    if (!same && (Has(name) || other.Has(name))) names.push_back(name);
  }
  return names;
}

absl::StatusOr<std::string> CommandLine::Required(const std::string& name) const {
  if (!Has(name)) return Usage("--" + name + " is required");
  return given_.at(name).back();
}

std::vector<std::string> CommandLine::All(const std::string& name) const {
  return Has(name) ? given_.at(name) : std::vector<std::string>();
}

std::string CommandLine::Text(const std::string& name) const {
  assert(options_.contains(name));
  return Has(name) ? given_.at(name).back() : options_.at(name).fallback;
}

absl::StatusOr<std::string> CommandLine::Value(const std::string& name) const {
  std::string text = Text(name);
  if (!Has(name) && text.empty()) return Usage("--" + name + " is required");
  return text;
}

absl::StatusOr<std::string> CommandLine::Choice(const std::string& name) const {
  HIPPODROME_ASSIGN_OR_RETURN(std::string text, Value(name));
  const std::vector<std::string> words = Alternatives(options_.at(name).value);
  if (std::find(words.begin(), words.end(), text) != words.end()) return text;
  return Usage(Called(name) + " is '" + text + "', expected " + Either(words));
}

absl::StatusOr<int64_t> CommandLine::Integer(const std::string& name, int64_t least,
                                             int64_t most) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, Value(name));
  return InRange(Called(name), text, least, most, "an integer");
}

absl::StatusOr<int64_t> CommandLine::Integer(const std::string& name, int64_t fallback,
                                             int64_t least, int64_t most) const {
  if (!Has(name)) return fallback;
  return Integer(name, least, most);
}

absl::StatusOr<double> CommandLine::Number(const std::string& name, double least,
                                           double most) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, Value(name));
  return InRange(Called(name), text, least, most, "a number");
}

absl::StatusOr<double> CommandLine::Number(const std::string& name) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, Value(name));
  double value = 0;
  if (!ParseWhole(text, value)) {
    return Usage(Called(name) + " is '" + text + "', expected a number");
  }
  return value;
}

absl::StatusOr<std::optional<DType>> CommandLine::Weights() const {
  if (Text("weights").empty() && !Has("weights")) return std::nullopt;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, Choice("weights"));
  return *std::ranges::find(kWeightTypes, text, WeightsName);
}

absl::StatusOr<int> CommandLine::Threads() const {
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t threads, Integer("threads", 0, 1024));
  return static_cast<int>(threads);
}

absl::StatusOr<CpuPlacement> CommandLine::Placement() const {
  CpuPlacement placement{.pin = Has("pin")};
  HIPPODROME_ASSIGN_OR_RETURN(placement.threads, Threads());
  if (Has("numa-node")) {
    HIPPODROME_ASSIGN_OR_RETURN(const int64_t node, Integer("numa-node", 0, kMostNumaNodes - 1));
    placement.numa_node = static_cast<int>(node);
  }
  return placement;
}

absl::StatusOr<CpuOptions> CommandLine::PlaceThreads() const {
  HIPPODROME_ASSIGN_OR_RETURN(const CpuPlacement placement, Placement());
  return hippodrome::PlaceThreads(placement);
}

absl::Status CommandLine::RefusePlacement() const {
  for (const char* option : {"pin", "numa-node"}) {
    if (Has(option)) {
      return Usage(Called(option) +
                   " is for one process: mpirun places its own (--map-by numa --bind-to numa)");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CommandLine::AttentionWindow() const {
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t window, Integer("attention-window", 0, INT32_MAX));
  if (window == 0 || window >= kWindowBlock) return window;
  return Usage(Called("attention-window") + " is " + std::to_string(window) +
               ", expected 0 or at least " + std::to_string(kWindowBlock));
}

absl::StatusOr<DType> CommandLine::H3State() const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string type, Choice("h3-state"));
  return type == "bf16" ? DType::kBF16 : DType::kF32;
}

absl::Status CommandLine::CheckDrafts() const {
  if (!Has("speculate") || !Has("draft")) return absl::OkStatus();
  return Usage("give either " + Called("speculate") + " or " + Called("draft"));
}

absl::StatusOr<DeviceChoice> CommandLine::Device() const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string device, Choice("device"));
  if (device == "cpu") return DeviceChoice::kCpu;
  return device == "cuda" ? DeviceChoice::kCuda : DeviceChoice::kAuto;
}

}  // namespace hippodrome
