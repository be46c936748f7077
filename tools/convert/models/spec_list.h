// Collects the tensors of a model.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_SPEC_LIST_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_SPEC_LIST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/safetensors.h"

namespace hippodrome {

// Matrices are of the type of weights that is chosen, all else is F32.
class SpecList {
 public:
  explicit SpecList(DType matrix_dtype) : matrix_dtype_(matrix_dtype) {}

  void Matrix(const std::string& name, int64_t rows, int64_t columns) {
    specs_.push_back({name, matrix_dtype_, {rows, columns}});
  }
  // Of the embedding or the head.
  void EmbeddingOrHead(const std::string& name, int64_t rows, int64_t columns) {
    specs_.push_back({name, EmbeddingType(matrix_dtype_), {rows, columns}});
  }
  void Vector(const std::string& name, std::vector<int64_t> shape) {
    specs_.push_back({name, DType::kF32, std::move(shape)});
  }
  void Linear(const std::string& name, int64_t out, int64_t in) {
    Matrix(name + ".weight", out, in);
    Vector(name + ".bias", {out});
  }
  void HeadLinear(const std::string& name, int64_t out, int64_t in) {
    EmbeddingOrHead(name + ".weight", out, in);
    Vector(name + ".bias", {out});
  }
  void LayerNorm(const std::string& name, int64_t d) {
    Vector(name + ".weight", {d});
    Vector(name + ".bias", {d});
  }
  std::vector<TensorSpec> Take() { return std::move(specs_); }

 private:
  DType matrix_dtype_;
  std::vector<TensorSpec> specs_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_SPEC_LIST_H_
