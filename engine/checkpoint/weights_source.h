// Where the tensors of a model come from.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_WEIGHTS_SOURCE_H_
#define HIPPODROME_ENGINE_CHECKPOINT_WEIGHTS_SOURCE_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
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
  // The type in which a tensor is stored; kF32 where there is none of that name.
  virtual DType TypeOf(const std::string& /*name*/) const { return DType::kF32; }
  // Says that `tensor` will not be read again, so that its memory can go.
  virtual void Drop(const TensorView& tensor) = 0;
  // Whether all tensors are f32 and stay where they are as long as the source. Readers then make no
  // copies, so that a backend that records can tell which tensor it is given.
  virtual bool keeps() const { return false; }
};

// The f32 values of a tensor, where the source keeps them or copied. Moving leaves them in place.
class HostFloats {
 public:
  HostFloats() = default;
  explicit HostFloats(std::vector<float> copy) : copy_(std::move(copy)), values_(copy_) {}
  explicit HostFloats(std::span<const float> kept) : values_(kept) {}
  HostFloats(HostFloats&&) = default;
  HostFloats& operator=(HostFloats&&) = default;

  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::span<const float>() const { return values_; }
  size_t size() const { return values_.size(); }
  float operator[](size_t i) const { return values_[i]; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<float> copy_;
  std::span<const float> values_;
};

// The values of a tensor in f32, after which it is dropped.
absl::StatusOr<HostFloats> ReadFloats(WeightsSource& source, const std::string& name,
                                      const std::vector<int64_t>& shape);

// Tensors of an open file, which must outlive this.
class FileWeights final : public WeightsSource {
 public:
  explicit FileWeights(const SafetensorsFile& file) : file_(file) {}
  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override {
    return file_.Get(name, shape);
  }
  DType TypeOf(const std::string& name) const override;
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
