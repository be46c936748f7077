// What the H3 kernels are given beside their own numbers.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_OPERANDS_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_OPERANDS_CUH_

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/h3/h3_prefill.h"
#include "kernels/cuda/h3/h3_step.h"

namespace hippodrome::cuda {

// T: float or BF16, the activations. Strides are in elements.
template <typename T>
struct H3Operands {
  H3View constants;
  H3StateView<T> state;
  const int32_t* slots;      // [B] of a step, -1: inert
  const int32_t* positions;  // [B] of a step
  const T* qkv;              // q | k | v
  int64_t qkv_stride;
  T* o;
  int64_t o_stride;
};

// Of an H3SequenceCall, without slots and positions.
template <typename T, typename Call>
H3Operands<T> MakeOperands(const Call& call) {
  return {.constants = call.constants.view(),
          .state = call.state.template view<T>(),
          .slots = nullptr,
          .positions = nullptr,
          .qkv = static_cast<const T*>(call.qkv.data),
          .qkv_stride = call.qkv.stride,
          .o = static_cast<T*>(call.o.data),
          .o_stride = call.o.stride};
}
template <typename T>
H3Operands<T> MakeStepOperands(const H3StepCall& call) {
  H3Operands<T> operands = MakeOperands<T>(call);
  operands.slots = static_cast<const int32_t*>(call.slots.data);
  operands.positions = static_cast<const int32_t*>(call.positions.data);
  return operands;
}

// Neighbours in memory, moved at once.
template <typename T>
using Four = RowVector<T, 4>;
template <typename T>
__device__ inline Four<T> LoadFour(const T* from) {
  return LoadVector<T, 4>(from);
}

// Where the layer's output puts channel head * head_dim + d2.
__device__ inline int32_t OutputChannel(const H3View& h3, int32_t channel) {
  if (h3.head_major != 0) return channel;
  return channel % h3.head_dim * h3.heads + channel / h3.head_dim;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_OPERANDS_CUH_
