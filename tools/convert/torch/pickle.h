// A pickle as inert data. Nothing in it is ever imported, called or built: globals, calls and
// object states become nodes that only tell what the file asked for.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

// Bounds of what is accepted. A published checkpoint has 100 KB of pickle and 10,000 nodes.
inline constexpr size_t kMaxPickleBytes = size_t{32} << 20;
inline constexpr size_t kMaxPickleNodes = size_t{2} << 20;

// Index of a node in its Pickle. Nodes refer to each other by index, so a cycle needs no care.
using PickleId = uint32_t;

struct PickleNode {
  enum class Kind : uint8_t {
    kNone,
    kBool,     // integer is 0 or 1
    kInteger,  // fits in 64 bits
    kString,   // text
    kTuple,    // items
    kList,     // items
    kDict,     // items: key, value, key, value, ..
    kGlobal,   // module, text: its name
    kObject,   // what calling `callable` with `arguments` would give; items as for kDict when the
               // file set items on it, as for kList when it appended
    kPersistent,  // arguments: the persistent id
    kOther,       // floats, bytes, long integers, sets: of no use here
  };
  Kind kind = Kind::kNone;
  PickleId callable = 0;
  PickleId arguments = 0;
  int64_t integer = 0;
  std::string_view module;
  std::string_view text;
  std::vector<PickleId> items;
};

// All nodes of one pickle. The strings point into the bytes that were parsed.
struct Pickle {
  std::vector<PickleNode> nodes;
  PickleId root = 0;
  size_t size = 0;  // bytes up to and including the end mark

  const PickleNode& operator[](PickleId id) const { return nodes[id]; }
  // Null unless `dict` (a kDict or kObject) holds `key`; the last of several.
  const PickleNode* Find(const PickleNode& dict, std::string_view key) const;
};

// Parses the pickle that `bytes` begins with (protocols 0 to 5, without out-of-band buffers and
// extension codes). Memory is bounded by kMaxPickleBytes and kMaxPickleNodes; there is no
// recursion. Errors: kInvalidArgument with the position for what is malformed, over a bound, or
// refers to a global that can run code (os.system, builtins.eval, ..), which is named.
absl::StatusOr<Pickle> ParsePickle(std::span<const std::byte> bytes);

// "module.name" of a kGlobal, or of the callable of a kObject; "a persistent id", "a string" and so
// on for the rest. For messages.
std::string Describe(const Pickle& pickle, const PickleNode& node);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_H_
