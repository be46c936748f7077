// State files that are not as their writer left them.
#ifndef HIPPODROME_TESTS_TESTING_STATE_FILE_PARTS_H_
#define HIPPODROME_TESTS_TESTING_STATE_FILE_PARTS_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/xxh3.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome {

// A file whose parts can be changed one by one.
struct StateFileParts {
  explicit StateFileParts(const std::string& bytes)
      : StateFileParts(ParseSafetensors(std::as_bytes(std::span(bytes))).value()) {}
  explicit StateFileParts(const SafetensorsIndex& index) {
    metadata = index.metadata;
    for (const auto& [name, tensor] : index.tensors) {
      const auto* data = reinterpret_cast<const char*>(tensor.data.data());
      tensors[name] = {{name, tensor.dtype, tensor.shape}, {data, tensor.data.size()}};
    }
  }

  std::string Joined() const {
    std::vector<TensorSpec> specs;
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      specs.push_back(tensor.spec);
      data += tensor.data;
    }
    return MakeSafetensorsHead(specs, metadata)->text + data;
  }

  // What the format says, written down a second time.
  std::string Canonical() const {
    std::string text;
    for (const auto& [name, value] : metadata) {
      if (name == "checksum" || name == "signature") continue;
      text += std::to_string(name.size()) + " " + name + " " + std::to_string(value.size()) + " " +
              value + "\n";
    }
    for (const auto& [name, tensor] : tensors) {
      std::string shape;
      for (const int64_t size : tensor.spec.shape) {
        shape += (shape.empty() ? "" : ", ") + std::to_string(size);
      }
      text += std::to_string(name.size()) + " " + name + " " + Name(tensor.spec.dtype) + " [" +
              shape + "]\n" + tensor.data;
    }
    return text;
  }

  // With the checksum that belongs to it.
  std::string Sealed() {
    Xxh3 xxh3;
    xxh3.Add(Canonical());
    metadata["checksum"] = xxh3.Hex();
    return Joined();
  }

  struct Tensor {
    TensorSpec spec;
    std::string data;
  };
  std::map<std::string, std::string> metadata;
  std::map<std::string, Tensor> tensors;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_STATE_FILE_PARTS_H_
