// The sum of tensors over the backends that train one model together.
#ifndef HIPPODROME_KERNELS_ALL_REDUCE_H_
#define HIPPODROME_KERNELS_ALL_REDUCE_H_

#include <cstddef>
#include <span>

#include "kernels/tensor.h"

namespace hippodrome {

// Of a fixed list of backends, which must outlive it. Each has a thread of its own that calls this
// for it, bound to the backend; all make the same calls, in the same order. Throws DeviceError.
class AllReduce {
 public:
  virtual ~AllReduce() = default;

  // Begins to replace each of `tensors`, of backend `r`, by the sum of what all backends gave in
  // its place, with the same bits on each: NewTensor() matrices or rows of them, of the same shapes
  // in every backend. The work that the backend was given before comes first. What it is given
  // until Finish() must not touch them, and goes on meanwhile.
  virtual void Begin(size_t r, std::span<const Tensor> tensors) = 0;
  // What backend `r` is given from now on sees the sums.
  virtual void Finish(size_t r) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_ALL_REDUCE_H_
