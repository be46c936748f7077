// One H3 layer over consecutive tokens of some sequences, between its projections.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_PREFILL_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_PREFILL_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/h3/h3_state.h"
#include "kernels/cpu/h3/h3_weights.h"

namespace hippodrome::cpu {

// As Backend::H3Sequence. qkv and o are f32.
void H3Sequence(ThreadPool& pool, const H3PrefillWeights& constants, Tensor qkv, H3Slots& state,
                const SequenceParts& parts, Tensor o);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_PREFILL_H_
