#include "tools/convert/torch/pickle_machine.h"

#include <charconv>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

using Kind = PickleNode::Kind;

absl::StatusOr<int64_t> Decimal(absl::StatusOr<std::string_view> line) {
  if (!line.ok()) return line.status();
  int64_t value = 0;
  const char* end = line->data() + line->size();
  const auto [stop, error] = std::from_chars(line->data(), end, value);
  if (error != std::errc() || stop != end) return InvalidArgument("a malformed decimal integer");
  return value;
}

absl::StatusOr<uint64_t> DecimalIndex(absl::StatusOr<std::string_view> line) {
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t value, Decimal(line));
  if (value < 0) return InvalidArgument("a negative index");
  return static_cast<uint64_t>(value);
}

// True with the status when OK, so that a handler can end in one line.
absl::StatusOr<bool> Handled(const absl::Status& status) {
  if (!status.ok()) return status;
  return true;
}

}  // namespace

absl::StatusOr<std::string_view> PickleCursor::Bytes(uint64_t count) {
  const size_t left = bytes_.size() - position_;
  if (count > left) {
    return InvalidArgument("needs " + std::to_string(count) + " more bytes, only " +
                           std::to_string(left) + " are left");
  }
  const std::string_view result = bytes_.substr(position_, count);
  position_ += count;
  return result;
}

absl::StatusOr<uint64_t> PickleCursor::Unsigned(size_t width) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string_view bytes, Bytes(width));
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

absl::StatusOr<int64_t> PickleCursor::Signed(size_t width) {
  HIPPODROME_ASSIGN_OR_RETURN(const uint64_t value, Unsigned(width));
  if (width == 0) return 0;
  const int unused = 64 - 8 * static_cast<int>(width);
  return static_cast<int64_t>(value << unused) >> unused;
}

absl::StatusOr<std::string_view> PickleCursor::Counted(size_t width) {
  HIPPODROME_ASSIGN_OR_RETURN(const uint64_t count, Unsigned(width));
  return Bytes(count);
}

absl::StatusOr<std::string_view> PickleCursor::Line() {
  const size_t end = bytes_.find('\n', position_);
  if (end == std::string_view::npos) return InvalidArgument("a line without an end");
  const std::string_view line = bytes_.substr(position_, end - position_);
  position_ = end + 1;
  return line;
}

absl::StatusOr<bool> PickleMachine::Number(char opcode) {
  switch (opcode) {
    case 'N':  // NONE
      return Handled(Push({.kind = Kind::kNone}));
    case '\x88':  // NEWTRUE
    case '\x89':  // NEWFALSE
      return Handled(Push({.kind = Kind::kBool, .integer = opcode == '\x88' ? 1 : 0}));
    case 'K':  // BININT1
    case 'M':  // BININT2
    {
      HIPPODROME_ASSIGN_OR_RETURN(const uint64_t value, cursor_.Unsigned(opcode == 'K' ? 1 : 2));
      return Handled(PushInteger(static_cast<int64_t>(value)));
    }
    case 'J':  // BININT
      return Handled(PushInteger(cursor_.Signed(4)));
    case '\x8a':  // LONG1
      return Handled(PushLong(cursor_.Counted(1)));
    case '\x8b':  // LONG4
      return Handled(PushLong(cursor_.Counted(4)));
    case 'I':  // INT; 00 and 01 are booleans and serve as integers just as well
      return Handled(PushInteger(Decimal(cursor_.Line())));
    case 'L':  // LONG
    case 'F':  // FLOAT
      return Handled(PushText(Kind::kOther, cursor_.Line()));
    case 'G':  // BINFLOAT
      return Handled(PushText(Kind::kOther, cursor_.Bytes(8)));
    default:
      return false;
  }
}

absl::StatusOr<bool> PickleMachine::Text(char opcode) {
  switch (opcode) {
    case 'X':  // BINUNICODE
    case 'T':  // BINSTRING
      return Handled(PushText(Kind::kString, cursor_.Counted(4)));
    case 'U':     // SHORT_BINSTRING
    case '\x8c':  // SHORT_BINUNICODE
      return Handled(PushText(Kind::kString, cursor_.Counted(1)));
    case '\x8d':  // BINUNICODE8
      return Handled(PushText(Kind::kString, cursor_.Counted(8)));
    case 'V':  // UNICODE; escapes stay as they are written
      return Handled(PushText(Kind::kString, cursor_.Line()));
    case 'S':     // STRING
    case 'C':     // SHORT_BINBYTES
    case 'B':     // BINBYTES
    case '\x8e':  // BINBYTES8
    case '\x96':  // BYTEARRAY8
    {
      if (opcode == 'S') return Handled(PushText(Kind::kOther, cursor_.Line()));
      const size_t width = opcode == 'C' ? 1 : opcode == 'B' ? 4 : 8;
      return Handled(PushText(Kind::kOther, cursor_.Counted(width)));
    }
    default:
      return false;
  }
}

absl::StatusOr<bool> PickleMachine::Sequence(char opcode) {
  switch (opcode) {
    case ')':  // EMPTY_TUPLE
      return Handled(Push({.kind = Kind::kTuple}));
    case ']':  // EMPTY_LIST
      return Handled(Push({.kind = Kind::kList}));
    case '}':  // EMPTY_DICT
      return Handled(Push({.kind = Kind::kDict}));
    case '\x8f':  // EMPTY_SET
      return Handled(Push({.kind = Kind::kOther}));
    case '\x85':  // TUPLE1
    case '\x86':  // TUPLE2
    case '\x87':  // TUPLE3
      return Handled(PushTopAs(Kind::kTuple, static_cast<unsigned char>(opcode) - 0x84u));
    case 't':     // TUPLE
    case 'l':     // LIST
    case 'd':     // DICT
    case '\x91':  // FROZENSET
    {
      HIPPODROME_ASSIGN_OR_RETURN(std::vector<PickleId> items, PopToMark());
      if (opcode == '\x91') return Handled(Push({.kind = Kind::kOther}));
      if (opcode == 'd' && items.size() % 2 != 0) return InvalidArgument("a key without a value");
      const Kind kind = opcode == 't' ? Kind::kTuple : opcode == 'l' ? Kind::kList : Kind::kDict;
      return Handled(Push({.kind = kind, .items = std::move(items)}));
    }
    default:
      return false;
  }
}

absl::StatusOr<bool> PickleMachine::Fill(char opcode) {
  switch (opcode) {
    case 'a':  // APPEND
    {
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId item, Pop());
      return Handled(Extend({item}, Kind::kList));
    }
    case 's':  // SETITEM
    {
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId value, Pop());
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId key, Pop());
      return Handled(Extend({key, value}, Kind::kDict));
    }
    case 'e':     // APPENDS
    case '\x90':  // ADDITEMS
    case 'u':     // SETITEMS
    {
      HIPPODROME_ASSIGN_OR_RETURN(const std::vector<PickleId> items, PopToMark());
      if (opcode != 'u') return Handled(Extend(items, Kind::kList));
      if (items.size() % 2 != 0) return InvalidArgument("a key without a value");
      return Handled(Extend(items, Kind::kDict));
    }
    case 'b':  // BUILD: the state of an object is of no use here
    {
      HIPPODROME_RETURN_IF_ERROR(Pop().status());
      return Handled(Top().status());
    }
    default:
      return false;
  }
}

absl::StatusOr<bool> PickleMachine::Call(char opcode) {
  switch (opcode) {
    case 'c':  // GLOBAL
    case 'i':  // INST
    {
      HIPPODROME_ASSIGN_OR_RETURN(const std::string_view module, cursor_.Line());
      HIPPODROME_ASSIGN_OR_RETURN(const std::string_view name, cursor_.Line());
      if (opcode == 'c') return Handled(PushGlobal(module, name));
      HIPPODROME_ASSIGN_OR_RETURN(std::vector<PickleId> items, PopToMark());
      HIPPODROME_RETURN_IF_ERROR(Push({.kind = Kind::kTuple, .items = std::move(items)}));
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId arguments, Pop());
      HIPPODROME_RETURN_IF_ERROR(PushGlobal(module, name));
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId callable, Pop());
      return Handled(PushObject(callable, arguments));
    }
    case '\x93':  // STACK_GLOBAL
    {
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId name, Pop());
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId module, Pop());
      if (pickle_[name].kind != Kind::kString || pickle_[module].kind != Kind::kString) {
        return InvalidArgument("a global whose name is not a string");
      }
      return Handled(PushGlobal(pickle_[module].text, pickle_[name].text));
    }
    case 'o':  // OBJ
    {
      HIPPODROME_ASSIGN_OR_RETURN(std::vector<PickleId> items, PopToMark());
      if (items.empty()) return InvalidArgument("an object without a class");
      const PickleId callable = items.front();
      items.erase(items.begin());
      HIPPODROME_RETURN_IF_ERROR(Push({.kind = Kind::kTuple, .items = std::move(items)}));
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId arguments, Pop());
      return Handled(PushObject(callable, arguments));
    }
    case '\x92':  // NEWOBJ_EX
      HIPPODROME_RETURN_IF_ERROR(Pop().status());
      [[fallthrough]];
    case 'R':     // REDUCE
    case '\x81':  // NEWOBJ
    {
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId arguments, Pop());
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId callable, Pop());
      return Handled(PushObject(callable, arguments));
    }
    case 'Q':  // BINPERSID
    {
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId arguments, Pop());
      return Handled(Push({.kind = Kind::kPersistent, .arguments = arguments}));
    }
    default:
      return false;
  }
}

absl::StatusOr<bool> PickleMachine::StackAndMemo(char opcode) {
  switch (opcode) {
    case '(':  // MARK
      if (marks_.size() >= kMaxPickleNodes) return ResourceExhausted("too many open marks");
      marks_.push_back(stack_.size());
      return true;
    case '0':  // POP
      return Handled(Pop().status());
    case '1':  // POP_MARK
      return Handled(PopToMark().status());
    case '2':  // DUP
    {
      HIPPODROME_ASSIGN_OR_RETURN(const PickleId top, Top());
      return Handled(PushId(top));
    }
    case 'q':  // BINPUT
    case 'r':  // LONG_BINPUT
    case 'p':  // PUT
    case 'h':  // BINGET
    case 'j':  // LONG_BINGET
    case 'g':  // GET
    {
      const bool text = opcode == 'p' || opcode == 'g';
      const size_t width = opcode == 'q' || opcode == 'h' ? 1 : 4;
      HIPPODROME_ASSIGN_OR_RETURN(const uint64_t index,
                                  text ? DecimalIndex(cursor_.Line()) : cursor_.Unsigned(width));
      return Handled(opcode >= 'p' ? Put(index) : Get(index));
    }
    case '\x94':  // MEMOIZE
      return Handled(Put(memo_.size()));
    case '\x80':  // PROTO
    {
      HIPPODROME_ASSIGN_OR_RETURN(const uint64_t protocol, cursor_.Unsigned(1));
      if (protocol > 5) return InvalidArgument("protocol " + std::to_string(protocol));
      return true;
    }
    case '\x95':  // FRAME: a hint for readers from a pipe
      return Handled(cursor_.Unsigned(8).status());
    default:
      return false;
  }
}

absl::Status PickleMachine::Step(char opcode) {
  using Handler = absl::StatusOr<bool> (PickleMachine::*)(char);
  constexpr Handler kHandlers[] = {&PickleMachine::StackAndMemo, &PickleMachine::Number,
                                   &PickleMachine::Text,         &PickleMachine::Sequence,
                                   &PickleMachine::Call,         &PickleMachine::Fill};
  for (const Handler handler : kHandlers) {
    HIPPODROME_ASSIGN_OR_RETURN(const bool handled, (this->*handler)(opcode));
    if (handled) return absl::OkStatus();
  }
  return InvalidArgument("opcode " + std::to_string(static_cast<unsigned char>(opcode)) +
                         " is not one a checkpoint uses");
}

absl::StatusOr<Pickle> PickleMachine::Run() {
  for (;;) {
    HIPPODROME_ASSIGN_OR_RETURN(const uint64_t byte, cursor_.Unsigned(1));
    const char opcode = static_cast<char>(byte);
    if (opcode == '.') break;
    HIPPODROME_RETURN_IF_ERROR(Step(opcode));
  }
  HIPPODROME_ASSIGN_OR_RETURN(pickle_.root, Pop());
  pickle_.size = cursor_.position();
  return std::move(pickle_);
}

}  // namespace hippodrome
