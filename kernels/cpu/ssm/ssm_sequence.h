// The SSM of a decoder over parts of sequences and over single tokens.
#ifndef HIPPODROME_KERNELS_CPU_SSM_SSM_SEQUENCE_H_
#define HIPPODROME_KERNELS_CPU_SSM_SSM_SEQUENCE_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/ssm/ssm_state.h"
#include "kernels/cpu/ssm/ssm_weights.h"

namespace hippodrome::cpu {

// The contracts of SequenceBackend::SsmSequence and Backend::SsmStep; u and y are f32.
void SsmSequence(ThreadPool& pool, const SsmConstants& constants, Tensor u, SsmSlots& state,
                 const SequenceParts& parts, Tensor y);
void SsmStep(ThreadPool& pool, const SsmConstants& constants, Tensor u, SsmSlots& state,
             Tensor slots, Tensor y);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_SSM_SSM_SEQUENCE_H_
