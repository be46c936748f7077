#include "tools/convert/torch/pickle.h"

#include "engine/base/status.h"
#include "tools/convert/printable.h"
#include "tools/convert/torch/pickle_machine.h"

namespace hippodrome {

using Kind = PickleNode::Kind;

const PickleNode* Pickle::Find(const PickleNode& dict, std::string_view key) const {
  const PickleNode* found = nullptr;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleNode& candidate = nodes[dict.items[i]];
    if (candidate.kind == Kind::kString && candidate.text == key) found = &nodes[dict.items[i + 1]];
  }
  return found;
}

absl::StatusOr<Pickle> ParsePickle(std::span<const std::byte> bytes) {
  const bool cut = bytes.size() > kMaxPickleBytes;
  PickleMachine machine(bytes.first(cut ? kMaxPickleBytes : bytes.size()));
  absl::StatusOr<Pickle> pickle = machine.Run();
  if (pickle.ok()) return pickle;
  return absl::Status(pickle.status().code(), "pickle, byte " + std::to_string(machine.position()) +
                                                  ": " + Message(pickle.status()));
}

std::string Describe(const Pickle& pickle, const PickleNode& node) {
  switch (node.kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a bool";
    case Kind::kInteger:
      return "the integer " + std::to_string(node.integer);
    case Kind::kString:
      return "the string '" + Printable(node.text) + "'";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kList:
      return "a list";
    case Kind::kDict:
      return "a dict";
    case Kind::kGlobal:
      return Printable(node.module) + "." + Printable(node.text);
    case Kind::kObject: {
      const PickleNode& callable = pickle[node.callable];
      if (callable.kind != Kind::kGlobal) return "an object of unknown class";
      return "an object made by " + Describe(pickle, callable);
    }
    case Kind::kPersistent:
      return "a storage";
    case Kind::kOther:
      return "a number, set or bytes";
  }
  return "?";
}

}  // namespace hippodrome
