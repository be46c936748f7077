// The stack machine of the pickle format, reduced to bookkeeping. Used by ParsePickle only.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_MACHINE_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/convert/torch/pickle.h"

namespace hippodrome {

// Reads the operands of opcodes; every length is checked against what is left.
class PickleCursor {
 public:
  explicit PickleCursor(std::span<const std::byte> bytes)
      : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

  size_t position() const { return position_; }

  // A little-endian unsigned integer of `width` <= 8 bytes.
  absl::StatusOr<uint64_t> Unsigned(size_t width);
  // A little-endian two's complement integer in the next `width` <= 8 bytes.
  absl::StatusOr<int64_t> Signed(size_t width);
  absl::StatusOr<std::string_view> Bytes(uint64_t count);
  // A length of `width` bytes, then that many bytes.
  absl::StatusOr<std::string_view> Counted(size_t width);
  // Up to and without the next newline, which is skipped.
  absl::StatusOr<std::string_view> Line();

 private:
  std::string_view bytes_;
  size_t position_ = 0;
};

class PickleMachine {
 public:
  explicit PickleMachine(std::span<const std::byte> bytes) : cursor_(bytes) {}

  // Runs to the end mark. The machine is spent afterwards. Errors lack the position.
  absl::StatusOr<Pickle> Run();
  size_t position() const { return cursor_.position(); }

 private:
  // Each handles the opcodes of one kind and returns false for the rest.
  absl::StatusOr<bool> Number(char opcode);
  absl::StatusOr<bool> Text(char opcode);
  absl::StatusOr<bool> Sequence(char opcode);
  absl::StatusOr<bool> Fill(char opcode);
  absl::StatusOr<bool> Call(char opcode);
  absl::StatusOr<bool> StackAndMemo(char opcode);
  absl::Status Step(char opcode);

  absl::Status Push(PickleNode node);
  absl::Status PushId(PickleId id);
  absl::Status PushInteger(absl::StatusOr<int64_t> value);
  absl::Status PushText(PickleNode::Kind kind, absl::StatusOr<std::string_view> text);
  absl::Status PushLong(absl::StatusOr<std::string_view> little_endian);
  absl::Status PushGlobal(std::string_view module, std::string_view name);
  absl::Status PushObject(PickleId callable, PickleId arguments);
  absl::Status PushTopAs(PickleNode::Kind kind, size_t count);

  absl::StatusOr<PickleId> Pop();
  absl::StatusOr<PickleId> Top() const;
  // Everything above the last mark, which is removed.
  absl::StatusOr<std::vector<PickleId>> PopToMark();

  // Appends `items` to the container on top of the stack.
  absl::Status Extend(const std::vector<PickleId>& items, PickleNode::Kind expected);
  absl::Status Put(uint64_t index);
  absl::Status Get(uint64_t index);

  PickleCursor cursor_;
  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;  // stack heights
  std::unordered_map<uint64_t, PickleId> memo_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_MACHINE_H_
