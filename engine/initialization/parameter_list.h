// Collects initial parameters, each with its distribution.
#ifndef HIPPODROME_ENGINE_INITIALIZATION_PARAMETER_LIST_H_
#define HIPPODROME_ENGINE_INITIALIZATION_PARAMETER_LIST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/initialization/initial_weights.h"
#include "engine/initialization/random_stream.h"

namespace hippodrome {

// Real and imaginary parts of variance 1/2: what the published code calls a complex normal number.
inline constexpr double kComplexNormal = 0.70710678118654752440;

class ParameterList {
 public:
  using Shape = std::vector<int64_t>;

  explicit ParameterList(uint64_t seed) : seed_(seed) {}

  void Constant(const std::string& name, const Shape& shape, float value);
  void Normal(const std::string& name, const Shape& shape, double deviation);
  void TruncatedNormal(const std::string& name, const Shape& shape, double deviation);
  void Uniform(const std::string& name, const Shape& shape, double low, double high);
  // `row` again and again until `shape` is full.
  void Repeated(const std::string& name, const Shape& shape, const std::vector<float>& row);
  // REQUIRES: as many values as elements.
  void Values(const std::string& name, const Shape& shape, std::vector<float> values);
  // The same for a constant of the model.
  void Untrained(const std::string& name, const Shape& shape, std::vector<float> values);

  // `prefix`weight [out, in], normal(0, deviation), and `prefix`bias [out], 0.
  void Linear(const std::string& prefix, int64_t out, int64_t in, double deviation);
  // `prefix`weight [size], 1, and `prefix`bias [size], 0.
  void Norm(const std::string& prefix, int64_t size);

  // The random numbers of the tensor `name`.
  RandomStream Stream(const std::string& name) const { return {seed_, name}; }
  std::vector<InitialParameter> Take() { return std::move(parameters_); }

 private:
  uint64_t seed_;
  std::vector<InitialParameter> parameters_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_INITIALIZATION_PARAMETER_LIST_H_
