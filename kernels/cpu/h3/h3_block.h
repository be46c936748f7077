// The tokens of a block in one group of channels, taken one by one: the blocked look-ahead.
//
// Let x be the modes after the tokens before position b, the base of the block. For its tokens at
// b + j, up to the next multiple of kScanSteps,
//   ks_{b+j} = F_j + sum_{i<=j} taps[j - i] k_{b+i}     F_j = sum_{i>j} taps[i] k_{b+j-i}
//   y_{b+j}  = Y_j + sum_{i<=j} K[j - i] kv_{b+i}       Y_j = Re sum_n w[n] dA[n]^(j+1) x[n]
// with D in K[0]. The first step of a block takes the tokens of the last one into rings and modes,
// and from these computes all F and Y: the other steps touch a fifth of what a slot keeps, and what
// they did is undone by going back to an earlier position of the block. A block has its base at a
// multiple of kScanSteps, but where a state of a backend without pending tokens was imported: so
// the bits of a sequence depend neither on its slot nor on what runs beside it. Where states are
// stored as bf16, k is rounded when it comes, and x when the tokens of a block are taken in.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_BLOCK_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_BLOCK_H_

#include <cstdint>

#include "kernels/cpu/h3/h3_scan.h"
#include "kernels/cpu/h3/h3_state.h"
#include "kernels/cpu/h3/h3_weights.h"

namespace hippodrome::cpu {

// Whether the token at `position` needs Begin() before its step.
inline bool Begins(const GroupBlock& block, int64_t position) {
  return block.place->has_ahead == 0 ||
         (position % kScanSteps == 0 && block.place->base != position);
}

// One group. Its working memory is the thread's: one at a time. Here and below Stored is float or
// BF16.
template <typename Stored>
class H3Block {
 public:
  H3Block(const H3PrefillWeights& constants, int64_t group);

  // Takes the tokens of the last block in and looks ahead from there. Meanwhile fetches what the
  // same will read of `next`, and leaves it the cache: FinishStreams() must follow the last one.
  // Null: this one is alone.
  void Begin(const GroupState<Stored>& state, int64_t position,
             const GroupState<Stored>* next) const;
  // One token, after Begin() where it needs that. qkv, o: column 0 of its rows.
  void Step(const GroupBlock& block, int64_t position, const float* qkv, float* o) const;

 private:
  // ks of the token of `step`.
  void ShiftSsm(const TokenStep& step) const;
  // y of a row block, from the token's row of inputs.
  void DiagonalSsm(const TokenStep& step, int64_t row_block) const;

  const H3PrefillWeights& constants_;
  const H3Layout& layout_;
  const int64_t group_;
  float* ahead_;  // rows of a block
  float* ks_;     // panels of one token
  float* v_;
  float* q_;
  float* o_;
  float* y_;  // one row block
};

// The rows of a block that the token at `position` reads, its own, j, among them.
struct RecentRows {
  int64_t first_key;
  int64_t first_input;
  int64_t j;
};
RecentRows RecentAt(const H3Layout& layout, const GroupBlock& block, int64_t position);

// The token at `position` in `group` and those after it, where these are groups of 16 heads.
TokenStep StepAt(const H3PrefillWeights& constants, int64_t group, const GroupBlock& block,
                 int64_t position, const float* qkv, float* o);

// Takes the pending tokens before `position` into rings and modes; none are pending then.
template <typename Stored>
void Settle(const H3PrefillWeights& constants, int64_t group, const GroupState<Stored>& state,
            int64_t position);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_BLOCK_H_
