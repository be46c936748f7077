// Steps that read little of the state: the blocked look-ahead, for head_dim 1 and N = 64.
//
// Let S be the modes after the tokens before position p, the start of a block. For the tokens p + j
// of the block, up to the next multiple of kScanSteps,
//   ks_{p+j} = F_j + sum_{i<=j} taps[j - i] k_{p+i}     F_j = sum_{i>j} taps[i] k_{p+j-i}
//   y_{p+j}  = Y_j + sum_{i<=j} K[j - i] kv_{p+i}       Y_j = Re sum_n w[n] dA[n]^(j+1) S[n]
// with D in K[0]. The first step of a block takes the tokens of the last one into S and the ring,
// and from these computes all F and Y of the block; the other steps touch a sixth of the memory
// that the state takes. Exact within rounding. A block starts where sequences that were taken in at
// once end (`bases`), and at multiples of kScanSteps: of positions, so that it does not matter for
// a sequence which slot it has, nor what runs beside it.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_LOOKAHEAD_H_
#define HIPPODROME_KERNELS_CUDA_H3_H3_LOOKAHEAD_H_

#include "kernels/cuda/h3/h3_prefill.h"
#include "kernels/cuda/h3/h3_step.h"

namespace hippodrome::cuda {

// The contract of H3Step(). REQUIRES: call.state.looks_ahead().
void H3LookaheadStep(Device& device, const H3StepCall& call);

// Takes all tokens of the call's sequences into rings and modes, as the kernels of h3_prefill.h
// expect, and notes where these will end: to be called before any of them, for the same call.
// REQUIRES: call.state.looks_ahead().
void H3Settle(Device& device, const H3SequenceCall& call);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_LOOKAHEAD_H_
