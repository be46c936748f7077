#include "tools/convert/torch/torch_state_dict.h"

#include <set>
#include <string_view>

#include "engine/base/status.h"
#include "tools/convert/printable.h"
#include "tools/convert/torch/torch_tensor.h"

namespace hippodrome {
namespace {

using Kind = PickleNode::Kind;

constexpr size_t kMaxNameLength = 256;

// A dict, or what collections.OrderedDict() gives.
bool IsDict(const Pickle& pickle, const PickleNode& node) {
  if (node.kind == Kind::kDict) return true;
  if (node.kind != Kind::kObject) return false;
  const PickleNode& callable = pickle[node.callable];
  return callable.kind == Kind::kGlobal && callable.module == "collections" &&
         callable.text == "OrderedDict";
}

// The items of a dict as key, value, ..; OrderedDict([(key, value), ..]) carries them as arguments.
std::vector<PickleId> DictItems(const Pickle& pickle, const PickleNode& dict) {
  std::vector<PickleId> items = dict.items;
  if (dict.kind != Kind::kObject) return items;
  const PickleNode& arguments = pickle[dict.arguments];
  if (arguments.items.size() != 1) return items;
  for (const PickleId id : pickle[arguments.items[0]].items) {
    const PickleNode& pair = pickle[id];
    if (pair.items.size() == 2) items.insert(items.end(), pair.items.begin(), pair.items.end());
  }
  return items;
}

absl::StatusOr<std::string> ReadName(const Pickle& pickle, const PickleNode& key) {
  if (key.kind != Kind::kString || key.text.empty() || key.text.size() > kMaxNameLength) {
    return InvalidArgument("state_dict: a name is " + Describe(pickle, key) +
                           "; expected a string of 1 to " + std::to_string(kMaxNameLength) +
                           " bytes");
  }
  return std::string(key.text);
}

// Plain values beside the model are harmless; the result of an unknown call is not accepted.
bool IsIgnorable(const TorchStateDict& state, const std::string& name, const PickleNode& value) {
  return state.lightning && name.rfind("model.", 0) != 0 && value.kind != Kind::kObject;
}

absl::Status AddEntry(const Pickle& pickle, const PickleNode& key, const PickleNode& value,
                      TorchStateDict& state) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string name, ReadName(pickle, key));
  if (!IsTorchTensor(pickle, value)) {
    if (IsIgnorable(state, name, value)) return absl::OkStatus();
    return InvalidArgument("state_dict entry '" + Printable(name) + "' is " +
                           Describe(pickle, value) + "; expected a tensor (nothing was executed)");
  }
  absl::StatusOr<TorchTensor> tensor = ReadTorchTensor(pickle, value);
  if (!tensor.ok()) {
    return InvalidArgument("tensor '" + Printable(name) + "': " + Message(tensor.status()));
  }
  tensor->name = name;
  state.tensors.push_back(*std::move(tensor));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TorchStateDict> ReadTorchStateDict(const Pickle& pickle) {
  const PickleNode* dict = &pickle[pickle.root];
  if (!IsDict(pickle, *dict)) {
    return InvalidArgument("the file holds " + Describe(pickle, *dict) +
                           "; expected a state_dict (a dict of tensors) or a Lightning checkpoint "
                           "(nothing was executed)");
  }
  TorchStateDict state;
  if (pickle.Find(*dict, "pytorch-lightning_version") != nullptr) {
    state.lightning = true;
    dict = pickle.Find(*dict, "state_dict");
    if (dict == nullptr || !IsDict(pickle, *dict)) {
      return InvalidArgument("a Lightning checkpoint whose 'state_dict' is " +
                             (dict == nullptr ? "missing" : Describe(pickle, *dict)) +
                             "; expected a dict of tensors (nothing was executed)");
    }
  }
  const std::vector<PickleId> items = DictItems(pickle, *dict);
  if (items.size() % 2 != 0) return InvalidArgument("state_dict: a name without a value");
  std::set<std::string_view> names;
  for (size_t i = 0; i < items.size(); i += 2) {
    const PickleNode& key = pickle[items[i]];
    if (key.kind == Kind::kString && !names.insert(key.text).second) {
      return InvalidArgument("state_dict: the name '" + Printable(key.text) + "' occurs twice");
    }
    HIPPODROME_RETURN_IF_ERROR(AddEntry(pickle, key, pickle[items[i + 1]], state));
  }
  return state;
}

}  // namespace hippodrome
