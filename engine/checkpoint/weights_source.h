// Where the tensors of a model come from.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_WEIGHTS_SOURCE_H_
#define HIPPODROME_ENGINE_CHECKPOINT_WEIGHTS_SOURCE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome {

// Gives tensors by the names of the published code. Not thread-safe.
class WeightsSource {
 public:
  virtual ~WeightsSource() = default;
  // The tensor with that name and shape, valid until it is dropped. Errors name the tensor.
  virtual absl::StatusOr<TensorView> Get(const std::string& name,
                                         const std::vector<int64_t>& shape) = 0;
  // Says that `tensor` will not be read again, so that its memory can go.
  virtual void Drop(const TensorView& tensor) = 0;
};

// The values of a tensor in f32, after which it is dropped.
absl::StatusOr<std::vector<float>> ReadFloats(WeightsSource& source, const std::string& name,
                                              const std::vector<int64_t>& shape);

// Tensors of an open file, which must outlive this.
class FileWeights final : public WeightsSource {
 public:
  explicit FileWeights(const SafetensorsFile& file) : file_(file) {}
  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override {
    return file_.Get(name, shape);
  }
  void Drop(const TensorView& tensor) override { file_.Drop(tensor); }

 private:
  const SafetensorsFile& file_;
};

// Untrained values, distributed as the published initialisation (h3: A = -1/2 + i pi n, B = 1,
// dt log-uniform in [0.001, 0.1], shift B = e_0, matrices normal with deviation 0.02; BiGS: the
// same but dt in [0.01, 1] and D = 1), the same for the same name. For benchmarks, whose speed must
// not depend on denormal or exploding values.
class RandomWeights final : public WeightsSource {
 public:
  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override;
  void Drop(const TensorView& tensor) override { values_.erase(tensor.name); }

 private:
  std::map<std::string, std::vector<float>> values_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CHECKPOINT_WEIGHTS_SOURCE_H_
