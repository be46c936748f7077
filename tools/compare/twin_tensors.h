// Finds the tensor of one backend that belongs to a view of another's.
#ifndef HIPPODROME_TOOLS_COMPARE_TWIN_TENSORS_H_
#define HIPPODROME_TOOLS_COMPARE_TWIN_TENSORS_H_

#include <map>
#include <memory>
#include <mutex>

#include "kernels/tensor.h"

namespace hippodrome {

// Pairs of tensors of equal size. Tensors may go on any thread.
class TwinTensors {
 public:
  // `expected`, whose memory from now on also holds `actual`, and the pair with it. Must not
  // outlive this object.
  OwnedTensor Join(OwnedTensor expected, OwnedTensor actual);

  // The rows and columns of the actual tensor that `view` has of its expected one; empty for an
  // empty view. REQUIRES: `view` is of a living tensor that Join() gave; its rows are whole rows of
  // that tensor apart.
  Tensor Of(const Tensor& view) const;

 private:
  struct Twins {
    Tensor expected;
    Tensor actual;
  };
  mutable std::mutex mutex_;
  std::map<const char*, Twins> twins_;  // by the address of the expected tensor
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMPARE_TWIN_TENSORS_H_
