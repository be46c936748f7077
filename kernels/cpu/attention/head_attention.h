// Attention of one head over one sequence, in blocks of queries against blocks of keys, with the
// scores of a block of queries in memory as a whole.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_HEAD_ATTENTION_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_HEAD_ATTENTION_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// One head of one sequence of T tokens.
struct HeadProblem {
  AttentionShape shape;
  Tensor qkv;                     // [T, 3 d]
  const float* turns = nullptr;   // [T, rotary_dim], unread without rotary
  const int32_t* mask = nullptr;  // [T], 0 for tokens without key and value; null: the sequence is
                                  // causal, row t sees keys s <= t
  int64_t head = 0;
  int64_t sequence = 0;      // of which the tokens are, among those of a batch
  AttentionDropout dropout;  // of a causal sequence
};

// o: [T, d], of which the columns of the head are written. REQUIRES: a causal sequence.
void AttendHead(const HeadProblem& problem, Tensor o);

// d_o: [T, d]; dqkv: [T, 3 d], of which the three columns of the head are written.
void AttendHeadBackward(const HeadProblem& problem, Tensor d_o, Gradient dqkv);

// The rotations of positions [0, tokens), [tokens, rotary_dim]. They belong to the calling thread
// until it asks again.
const float* FirstTurns(ThreadPool& pool, const AttentionShape& shape, Tensor inv_freq,
                        int64_t tokens);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_HEAD_ATTENTION_H_
