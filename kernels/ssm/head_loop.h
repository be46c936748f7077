// How host code runs over the heads of a layer: each call is independent of the others.
#ifndef HIPPODROME_KERNELS_SSM_HEAD_LOOP_H_
#define HIPPODROME_KERNELS_SSM_HEAD_LOOP_H_

#include <cstdint>
#include <functional>

namespace hippodrome {

// Calls body(i) once for each i < count, in any order, on any threads, and returns when all are
// done.
using HeadLoop = std::function<void(int64_t count, const std::function<void(int64_t index)>& body)>;

inline void OneAfterAnother(int64_t count, const std::function<void(int64_t index)>& body) {
  for (int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_HEAD_LOOP_H_
