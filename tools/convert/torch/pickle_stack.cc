// The stack, the marks and the memo of the pickle machine.
#include <algorithm>
#include <array>
#include <string_view>

#include "engine/base/status.h"
#include "tools/convert/printable.h"
#include "tools/convert/torch/pickle_machine.h"

namespace hippodrome {
namespace {

using Kind = PickleNode::Kind;

constexpr std::array<std::string_view, 29> kModules = {"_pickle",
                                                       "_posixsubprocess",
                                                       "_thread",
                                                       "asyncio",
                                                       "bdb",
                                                       "code",
                                                       "codeop",
                                                       "commands",
                                                       "ctypes",
                                                       "imp",
                                                       "importlib",
                                                       "marshal",
                                                       "multiprocessing",
                                                       "nt",
                                                       "os",
                                                       "pdb",
                                                       "pickle",
                                                       "pip",
                                                       "popen2",
                                                       "posix",
                                                       "pty",
                                                       "runpy",
                                                       "shutil",
                                                       "signal",
                                                       "socket",
                                                       "subprocess",
                                                       "sys",
                                                       "timeit",
                                                       "webbrowser"};

constexpr std::array<std::string_view, 11> kBuiltins = {
    "__import__", "apply", "breakpoint", "compile", "eval", "exec",
    "execfile",   "file",  "globals",    "input",   "open"};

template <size_t N>
bool Contains(const std::array<std::string_view, N>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// True for globals that serve to run code or to reach the system (os.system, builtins.eval, ..).
// They would be inert here too, but a file that names one is an attack and is refused whole.
bool IsDangerousGlobal(std::string_view module, std::string_view name) {
  const std::string_view top = module.substr(0, module.find('.'));
  if (top == "builtins" || top == "__builtin__") {
    return Contains(kBuiltins, name.substr(0, name.find('.')));
  }
  return Contains(kModules, top);
}

absl::Status TooMuch(const char* what) {
  return ResourceExhausted("more than " + std::to_string(kMaxPickleNodes) + " " + what);
}

}  // namespace

absl::Status PickleMachine::PushId(PickleId id) {
  if (stack_.size() >= kMaxPickleNodes) return TooMuch("values on the stack");
  stack_.push_back(id);
  return absl::OkStatus();
}

absl::Status PickleMachine::Push(PickleNode node) {
  if (pickle_.nodes.size() >= kMaxPickleNodes) return TooMuch("values");
  pickle_.nodes.push_back(std::move(node));
  return PushId(static_cast<PickleId>(pickle_.nodes.size() - 1));
}

absl::Status PickleMachine::PushInteger(absl::StatusOr<int64_t> value) {
  if (!value.ok()) return value.status();
  return Push({.kind = Kind::kInteger, .integer = *value});
}

absl::Status PickleMachine::PushText(Kind kind, absl::StatusOr<std::string_view> text) {
  if (!text.ok()) return text.status();
  return Push({.kind = kind, .text = *text});
}

absl::Status PickleMachine::PushLong(absl::StatusOr<std::string_view> little_endian) {
  if (!little_endian.ok()) return little_endian.status();
  if (little_endian->size() > 8) return Push({.kind = Kind::kOther, .text = *little_endian});
  PickleCursor digits(std::as_bytes(std::span(*little_endian)));
  return PushInteger(digits.Signed(little_endian->size()));
}

absl::Status PickleMachine::PushGlobal(std::string_view module, std::string_view name) {
  if (IsDangerousGlobal(module, name)) {
    return InvalidArgument("it asks for " + Printable(module) + "." + Printable(name) +
                           ", which no checkpoint needs; nothing was executed");
  }
  return Push({.kind = Kind::kGlobal, .module = module, .text = name});
}

absl::Status PickleMachine::PushObject(PickleId callable, PickleId arguments) {
  return Push({.kind = Kind::kObject, .callable = callable, .arguments = arguments});
}

absl::Status PickleMachine::PushTopAs(Kind kind, size_t count) {
  std::vector<PickleId> items(count);
  for (size_t i = count; i-- > 0;) {
    HIPPODROME_ASSIGN_OR_RETURN(items[i], Pop());
  }
  return Push({.kind = kind, .items = std::move(items)});
}

absl::StatusOr<PickleId> PickleMachine::Top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
    return InvalidArgument("takes from an empty stack");
  }
  return stack_.back();
}

absl::StatusOr<PickleId> PickleMachine::Pop() {
  HIPPODROME_ASSIGN_OR_RETURN(const PickleId top, Top());
  stack_.pop_back();
  return top;
}

absl::StatusOr<std::vector<PickleId>> PickleMachine::PopToMark() {
  if (marks_.empty()) return InvalidArgument("a mark is missing");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleId> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

absl::Status PickleMachine::Extend(const std::vector<PickleId>& items, Kind expected) {
  HIPPODROME_ASSIGN_OR_RETURN(const PickleId top, Top());
  PickleNode& container = pickle_.nodes[top];
  if (container.kind == Kind::kOther) return absl::OkStatus();  // a set
  if (container.kind != expected && container.kind != Kind::kObject) {
    return InvalidArgument("puts items into " + Describe(pickle_, container));
  }
  container.items.insert(container.items.end(), items.begin(), items.end());
  return absl::OkStatus();
}

absl::Status PickleMachine::Put(uint64_t index) {
  if (memo_.size() >= kMaxPickleNodes) return TooMuch("remembered values");
  HIPPODROME_ASSIGN_OR_RETURN(memo_[index], Top());
  return absl::OkStatus();
}

absl::Status PickleMachine::Get(uint64_t index) {
  const auto found = memo_.find(index);
  if (found == memo_.end()) {
    return InvalidArgument("recalls value " + std::to_string(index) + ", which was never stored");
  }
  return PushId(found->second);
}

}  // namespace hippodrome
