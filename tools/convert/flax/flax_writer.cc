#include "tools/convert/flax/flax_writer.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "engine/base/partial_file.h"
#include "engine/base/status.h"
#include "tools/convert/flax/flax_checkpoint.h"
#include "tools/convert/flax/msgpack_writer.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

constexpr uint64_t kLargestArray = uint64_t{1} << 30;  // bytes

// A map of the file, or an array.
struct Node {
  std::map<std::string, Node> children;
  const FlaxTensor* tensor = nullptr;  // of an array
};

Node MakeTree(const std::vector<FlaxTensor>& tensors) {
  Node root;
  for (const FlaxTensor& tensor : tensors) {
    Node* node = &root;
    std::string_view rest = tensor.path;
    for (size_t slash; (slash = rest.find('/')) != std::string_view::npos;) {
      node = &node->children[std::string(rest.substr(0, slash))];
      rest.remove_prefix(slash + 1);
    }
    node->children[std::string(rest)].tensor = &tensor;
  }
  return root;
}

class FlaxWriter {
 public:
  FlaxWriter(PartialFile& file, const std::function<void(const TensorView&)>& written)
      : file_(file), written_(written) {}

  // As deep as the longest path.
  absl::Status Write(const Node& node) {
    if (node.tensor != nullptr) return WriteArray(*node.tensor);
    HIPPODROME_RETURN_IF_ERROR(file_.Append(msgpack::MapHead(node.children.size())));
    for (const auto& [key, child] : node.children) {
      HIPPODROME_RETURN_IF_ERROR(file_.Append(msgpack::Text(key)));
      HIPPODROME_RETURN_IF_ERROR(Write(child));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status WriteArray(const FlaxTensor& array) {
    const TensorView& tensor = array.tensor;
    std::vector<int64_t> shape = tensor.shape;
    if (array.transposed) std::swap(shape[0], shape[1]);
    std::string head = msgpack::ArrayHead(3) + msgpack::ArrayHead(shape.size());
    for (const int64_t size : shape) head += msgpack::Integer(size);
    head += msgpack::Text(FlaxType(tensor.dtype)) + msgpack::BinaryHead(tensor.data.size());
    HIPPODROME_RETURN_IF_ERROR(
        file_.Append(msgpack::ExtensionHead(kFlaxArray, head.size() + tensor.data.size()) + head));
    HIPPODROME_RETURN_IF_ERROR(array.transposed ? AppendTransposed(tensor)
                                                : file_.Append(tensor.data));
    written_(tensor);
    return absl::OkStatus();
  }

  // Some columns at a time, so that neither side is read or written with large strides.
  absl::Status AppendTransposed(const TensorView& matrix) {
    constexpr size_t kColumns = 64;
    const auto rows = static_cast<size_t>(matrix.shape[0]);
    const auto columns = static_cast<size_t>(matrix.shape[1]);
    const size_t width = SizeOf(matrix.dtype);
    for (size_t first = 0; first < columns; first += kColumns) {
      const size_t count = std::min(kColumns, columns - first);
      buffer_.resize(count * rows * width);
      for (size_t i = 0; i < rows; ++i) {
        const std::byte* from = matrix.data.data() + (i * columns + first) * width;
        for (size_t j = 0; j < count; ++j) {
          std::memcpy(buffer_.data() + (j * rows + i) * width, from + j * width, width);
        }
      }
      HIPPODROME_RETURN_IF_ERROR(file_.Append(buffer_));
    }
    return absl::OkStatus();
  }

  PartialFile& file_;
  const std::function<void(const TensorView&)>& written_;
  std::vector<std::byte> buffer_;
};

}  // namespace

absl::Status WriteFlaxFile(const std::string& path, const std::vector<FlaxTensor>& tensors,
                           const std::function<void(const TensorView&)>& written) {
  for (const FlaxTensor& array : tensors) {
    if (array.tensor.data.size() <= kLargestArray) continue;
    return InvalidArgument("tensor '" + Printable(array.tensor.name) + "' has " +
                           std::to_string(array.tensor.data.size()) +
                           " bytes; expected at most 2^30 in a Flax file");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::unique_ptr<PartialFile> file, PartialFile::Create(path));
  HIPPODROME_RETURN_IF_ERROR(FlaxWriter(*file, written).Write(MakeTree(tensors)));
  return file->Finish();
}

}  // namespace hippodrome
