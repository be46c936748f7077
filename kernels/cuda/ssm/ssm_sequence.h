// The SSM of a decoder over parts of sequences and over single tokens.
#ifndef HIPPODROME_KERNELS_CUDA_SSM_SSM_SEQUENCE_H_
#define HIPPODROME_KERNELS_CUDA_SSM_SSM_SEQUENCE_H_

#include "kernels/cuda/base/recurrent_slots.h"
#include "kernels/cuda/ssm/ssm_weights.h"

namespace hippodrome::cuda {

// The contracts of SequenceBackend::SsmSequence and Backend::SsmStep; states of SsmStateArrays().
void SsmSequence(Device& device, const SsmConstants& constants, Tensor u, RecurrentSlots& state,
                 const SequenceParts& parts, Tensor y);
void SsmStep(Device& device, const SsmConstants& constants, Tensor u, RecurrentSlots& state,
             Tensor slots, Tensor y);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_SSM_SSM_SEQUENCE_H_
