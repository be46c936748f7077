// Pieces of a pickle of protocol 2, as torch.save writes it: each leaves one value on the stack of
// the machine that reads it.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_WRITER_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hippodrome::pickled {

std::string Text(const std::string& text);
std::string Integer(int64_t value);
std::string Integers(const std::vector<int64_t>& values);  // a tuple
std::string Global(const std::string& module, const std::string& name);
std::string Call(const std::string& callable, const std::vector<std::string>& arguments);
// A collections.OrderedDict with alternating keys and values.
std::string Dict(const std::vector<std::string>& items);
// The persistent id of a storage. `type`: "FloatStorage", ..
std::string Storage(const std::string& type, const std::string& key, int64_t elements);
// A view of a storage: see TorchTensor.
std::string Tensor(const std::string& storage, int64_t offset, const std::vector<int64_t>& shape,
                   const std::vector<int64_t>& strides);
// The whole pickle: protocol, value, end.
std::string Whole(const std::string& value);

}  // namespace hippodrome::pickled

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_WRITER_H_
