#include "tools/convert/torch/pickle_writer.h"

#include "tools/convert/byte_order.h"

namespace hippodrome::pickled {

std::string Text(const std::string& text) { return "X" + LittleEndian(text.size(), 4) + text; }

std::string Integer(int64_t value) {
  return "\x8a\x08" + LittleEndian(static_cast<uint64_t>(value), 8);
}

std::string Integers(const std::vector<int64_t>& values) {
  std::string result = "(";
  for (const int64_t value : values) result += Integer(value);
  return result + "t";
}

std::string Global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

std::string Call(const std::string& callable, const std::vector<std::string>& arguments) {
  std::string result = callable + "(";
  for (const std::string& argument : arguments) result += argument;
  return result + "tR";
}

std::string Dict(const std::vector<std::string>& items) {
  std::string result = Global("collections", "OrderedDict") + ")R(";
  for (const std::string& item : items) result += item;
  return result + "u";
}

std::string Storage(const std::string& type, const std::string& key, int64_t elements) {
  return "(" + Text("storage") + Global("torch", type) + Text(key) + Text("cpu") +
         Integer(elements) + "tQ";
}

std::string Tensor(const std::string& storage, int64_t offset, const std::vector<int64_t>& shape,
                   const std::vector<int64_t>& strides) {
  constexpr char kRequiresGradient[] = "\x89";  // False
  return Call(Global("torch._utils", "_rebuild_tensor_v2"),
              {storage, Integer(offset), Integers(shape), Integers(strides), kRequiresGradient,
               Dict({})});  // no hooks
}

std::string Whole(const std::string& value) { return "\x80\x02" + value + "."; }

}  // namespace hippodrome::pickled
