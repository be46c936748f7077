// Sums in double that end as the f32 gradient of a parameter.
#ifndef HIPPODROME_TESTS_REFERENCE_TRAINING_PARAMETER_SUMS_H_
#define HIPPODROME_TESTS_REFERENCE_TRAINING_PARAMETER_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hippodrome::reference {

// Writes its sums to `to` when it goes; adds nothing where `to` is empty.
class ParameterSums {
 public:
  explicit ParameterSums(std::span<float> to) : to_(to), sums_(to.size()) {}
  ~ParameterSums() {
    for (size_t i = 0; i < sums_.size(); ++i) to_[i] = static_cast<float>(sums_[i]);
  }
  ParameterSums(const ParameterSums&) = delete;
  ParameterSums& operator=(const ParameterSums&) = delete;

  void Add(int64_t i, double value) {
    if (!sums_.empty()) sums_[i] += value;
  }

 private:
  std::span<float> to_;
  std::vector<double> sums_;
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_TRAINING_PARAMETER_SUMS_H_
