// What backends that train one model together need of each other.
#ifndef HIPPODROME_KERNELS_GRADIENT_EXCHANGE_H_
#define HIPPODROME_KERNELS_GRADIENT_EXCHANGE_H_

#include <span>
#include <vector>

#include "kernels/tensor.h"

namespace hippodrome {

// Of a fixed list of backends. Not thread-safe; the backends must outlive it.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  // Replaces tensor i of every backend by the sum of the tensors i of all, with the same bits on
  // each. tensors[r]: of backend r, NewTensor() matrices or rows of them; every r has as many, of
  // the same shapes. The work that the backends were given before comes first, and what they are
  // given later sees the sums. REQUIRES: no other thread uses the backends meanwhile. Throws
  // DeviceError.
  virtual void Sum(std::span<const std::vector<Tensor>> tensors) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_GRADIENT_EXCHANGE_H_
