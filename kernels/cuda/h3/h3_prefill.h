// H3 over consecutive tokens: the shift SSM, the product with v, the diagonal SSM and the gate in
// one launch. Three kernels compute it; their files say how they differ.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_PREFILL_H_
#define HIPPODROME_KERNELS_CUDA_H3_H3_PREFILL_H_

#include <cstdint>
#include <span>

#include "kernels/cuda/h3/h3_state.h"

namespace hippodrome::cuda {

// What Backend::H3Sequence is given.
struct H3SequenceCall {
  const H3PrefillWeights& constants;
  Tensor qkv;  // [rows, 3 d] activations
  H3Slots& state;
  std::span<const SequencePart> parts;
  std::span<const StateCapture> captures;  // read by H3Sequence() alone
  Tensor o;                                // [rows, d] activations
};

// Blocked scan on the tensor cores (h3_scan.cu): any start, any length. REQUIRES: CanScan().
// shared_bytes: Device::shared_bytes(), which the stretches of bf16 may exceed.
bool CanScan(const H3PrefillWeights& constants, size_t shared_bytes);  // head_dim 1, N <= 64
void H3Scan(Device& device, const H3SequenceCall& call);

// Fused FFT convolution (h3_fft.cu): start 0, as many points for all parts as the longest needs.
// REQUIRES: CanTransform() each part.
bool CanTransform(const H3PrefillWeights& constants, int64_t start, int64_t tokens,
                  size_t shared_bytes);
int64_t TransformPoints(int64_t tokens);
void H3Fft(Device& device, const H3SequenceCall& call);

// The recurrence, token by token (h3_recurrence.cu): any layer, any start.
void H3Recurrence(Device& device, const H3SequenceCall& call);

// The contract of Backend::H3Sequence: for each part the fastest of the above that can, which
// follows from the layer, the start and the length; one launch for the parts that take the same. A
// part is cut where its state is captured. Each computes a part alone: its bits do not depend on
// those beside it, but on how a prompt is cut.
void H3Sequence(Device& device, const H3SequenceCall& call);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_PREFILL_H_
