// One H3 layer for one token of each of several sequences, between its projections.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_STEP_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_STEP_H_

#include "kernels/cpu/base/later_reads.h"
#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/h3/h3_state.h"
#include "kernels/cpu/h3/h3_weights.h"

namespace hippodrome::cpu {

// As Backend::H3Step. qkv and o are f32, slots and positions kI32.
void H3Step(ThreadPool& pool, const H3PrefillWeights& constants, Tensor qkv, H3Slots& state,
            Tensor slots, Tensor positions, Tensor o);

// What that reads of the states, but of sequences that begin a block: theirs is more than the
// second-level cache holds. On two cores of a Zen 4, 64 sequences of 768 channels: 150 to 175 us in
// place, 66 to 90 where the product before had asked for it, which then took 15 us more. Where the
// cores pass lines slowly it gains 10 us and the product loses 20.
LaterReads ReadsOfH3Step(const H3PrefillWeights& constants, const H3Slots& state, Tensor slots,
                         Tensor positions);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_STEP_H_
