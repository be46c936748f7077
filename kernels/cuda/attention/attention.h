// Causal attention over paged keys and values.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_H_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_H_

#include <span>

#include "kernels/cuda/attention/key_value_pages.h"

namespace hippodrome::cuda {

// What Backend::AttentionSequence is given.
struct AttentionSequenceCall {
  const AttentionShape& shape;
  Tensor qkv;       // [rows, 3 d] activations
  Tensor inv_freq;  // [1, rotary_dim / 2] f32, or empty
  PagedRows& pages;
  Tensor page_tables;  // kI32 [B, P], row i of parts[i]
  std::span<const SequencePart> parts;
  Tensor o;  // [rows, d] activations
};

// What Backend::AttentionStep is given.
struct AttentionStepCall {
  const AttentionShape& shape;
  Tensor qkv;       // [B, 3 d] activations
  Tensor inv_freq;  // [1, rotary_dim / 2] f32, or empty
  PagedRows& pages;
  Tensor page_tables;  // kI32 [B, P]
  Tensor positions;    // kI32 [1, B], -1: inert
  Tensor o;            // [B, d] activations
};

void AttentionSequence(Device& device, const AttentionSequenceCall& call);
// The width P of the tables decides into how many parts the sums of a row are cut, and so their
// last bits, even if the row uses few of its pages.
void AttentionStep(Device& device, const AttentionStepCall& call);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_H_
