// One H3 layer for one token of each of several sequences, between its projections.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_STEP_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_STEP_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/h3/h3_state.h"
#include "kernels/cpu/h3/h3_weights.h"

namespace hippodrome::cpu {

// As Backend::H3Step. qkv and o are f32, slots and positions kI32.
void H3Step(ThreadPool& pool, const H3PrefillWeights& constants, Tensor qkv, H3Slots& state,
            Tensor slots, Tensor positions, Tensor o);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_STEP_H_
