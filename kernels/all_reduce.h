// The sum of tensors over the backends that train one model together.
#ifndef HIPPODROME_KERNELS_ALL_REDUCE_H_
#define HIPPODROME_KERNELS_ALL_REDUCE_H_

#include <span>
#include <vector>

#include "kernels/tensor.h"

namespace hippodrome {

// Of a fixed list of backends. Not thread-safe; the backends must outlive it.
class AllReduce {
 public:
  virtual ~AllReduce() = default;

  // Replaces tensor i of every backend by the sum of the tensors i of all, with the same bits on
  // each. tensors[r]: of backend r, NewTensor() matrices or rows of them; every r has as many, of
  // the same shapes. The work that the backends were given before comes first, and what they are
  // given later sees the sums. REQUIRES: no other thread uses the backends meanwhile. Throws
  // DeviceError.
  virtual void Sum(std::span<const std::vector<Tensor>> tensors) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_ALL_REDUCE_H_
