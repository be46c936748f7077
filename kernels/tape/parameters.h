// The parameters of a model in training.
#ifndef HIPPODROME_KERNELS_TAPE_PARAMETERS_H_
#define HIPPODROME_KERNELS_TAPE_PARAMETERS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/training_backend.h"

namespace hippodrome {

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> host;  // the values at the last Parameters::Fetch()
  OwnedTensor value;        // [rows, cols]: the first dimension of two or more, and the rest
  Tensor gradient;          // of the same shape; empty until a tape reads the parameter
};

// Master copies in f32, on the backend, with host copies at addresses that stay, by which a tape
// knows what it is given. Not thread-safe; `backend` must outlive it.
class Parameters {
 public:
  explicit Parameters(TrainingBackend& backend) : backend_(backend) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // REQUIRES: a new name, as many values as the shape says.
  void Add(const std::string& name, const std::vector<int64_t>& shape, std::vector<float> values);

  // In the order in which they were added.
  std::deque<Parameter>& all() { return all_; }
  const std::deque<Parameter>& all() const { return all_; }
  // Null for an unknown name.
  Parameter* Find(const std::string& name);
  // The one whose host copy is exactly `values`, or null.
  Parameter* At(std::span<const float> values);

  // Brings the host copy up to date. Waits for pending work.
  void Fetch(Parameter& parameter);
  // Replaces the values, on the host and on the backend.
  void Store(Parameter& parameter, std::span<const float> values);

 private:
  TrainingBackend& backend_;
  std::deque<Parameter> all_;
  std::map<std::string, Parameter*> by_name_;
  std::map<const float*, Parameter*> by_address_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_TAPE_PARAMETERS_H_
