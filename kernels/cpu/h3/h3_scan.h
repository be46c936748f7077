// The two SSMs of an H3 layer as recurrences, on tiles: time along rows, 16 channels or rows of the
// layer in lanes. States are stored as f32 or as bf16, to which they are rounded where it is said.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_SCAN_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_SCAN_H_

#include <cstdint>

#include "kernels/cpu/h3/h3_layout.h"
#include "kernels/dtype.h"

namespace hippodrome::cpu {

// Constants of one mode of 16 rows, each [re | im, lanes]. States are kept divided by dB, so that
// x' = dA x' + u and y = Re sum_n w_n x'_n + D u with w = 2 C dB. Powers are taken in double.
struct ModeConstants {
  float a[4][kModeFloats];    // dA ... dA^4
  float a_scan[kModeFloats];  // dA^kScanSteps
  float wa[kModeFloats];      // 2 C dB dA
};

// Constants of 16 rows.
struct RowConstants {
  int64_t count = 0;                     // M
  const ModeConstants* modes = nullptr;  // [count]
  const float* kernel = nullptr;         // [kScanSteps, lanes], K[0..], D added to K[0]
};

// y and the state after `blocks` blocks of kScanSteps inputs. u, y: [kScanSteps blocks, lanes];
// state: [modes, re | im, lanes], rounded after each block.
void Scan(const RowConstants& rows, const float* u, float* y, int64_t blocks, float* state);
void Scan(const RowConstants& rows, const float* u, float* y, int64_t blocks, BF16* state);

// The state alone, rounded at the end.
void Absorb(const RowConstants& rows, const float* u, int64_t blocks, float* state);
void Absorb(const RowConstants& rows, const float* u, int64_t blocks, BF16* state);

// The state alone after any number of inputs [tokens, lanes], one after the other; rounded at the
// end.
void AbsorbTokens(const RowConstants& rows, const float* u, int64_t tokens, float* state);
void AbsorbTokens(const RowConstants& rows, const float* u, int64_t tokens, BF16* state);

// What the state gives to the outputs of the next kScanSteps tokens, if they bring nothing
// themselves: y_i = Re sum_n w_n dA_n^(i+1) x_n.  y: [kScanSteps, lanes].
void LookAhead(const RowConstants& rows, const float* state, float* y);
void LookAhead(const RowConstants& rows, const BF16* state, float* y);

// Block `block` of the rows from `first` on of `rows`, from those of a tile. Not kAdd.
void StoreAhead(const float* tile, const TokenRows& rows, int64_t first, int64_t block,
                StoreForm form);

// Absorb() of the block of inputs in block `block` of `inputs`, then LookAhead() and StoreAhead()
// into the same block of `sums`, to the bit. Meanwhile fetches the state at `ahead` into cache.
void AbsorbAndLookAhead(const RowConstants& rows, const TokenRows& inputs, const TokenRows& sums,
                        int64_t block, StoreForm form, float* state, const float* ahead);
void AbsorbAndLookAhead(const RowConstants& rows, const TokenRows& inputs, const TokenRows& sums,
                        int64_t block, StoreForm form, BF16* state, const BF16* ahead);

// What a ring [N, lanes], the input at time t in row t mod N, gives to the kScanSteps outputs of
// the shift SSM from time `next` on: y_j = sum_{j < i < N} taps[i] k_{next + j - i}. Meanwhile
// fetches the ring at `ahead` into cache.  y: [kScanSteps, lanes].
void LookAheadInRing(const float* taps, int64_t count, const float* ring, int64_t next, float* y,
                     const float* ahead);
void LookAheadInRing(const float* taps, int64_t count, const BF16* ring, int64_t next, float* y,
                     const BF16* ahead);

// out = sum + sum_{i < count} kernel[i] x[count - 1 - i]: what the last `count` inputs give.
// kernel: [>= count, lanes]; x: rows of lanes; sum, out: [lanes].
void AddRecent(const float* kernel, TileRows x, int64_t count, const float* sum, float* out);

// One token of adjacent groups of 16 channels that are heads of their own, in row j of a block.
struct TokenStep {
  const float* taps;    // of the first group, [>= j + 1, lanes]
  int64_t taps_stride;  // to those of the next
  const float* kernel;  // as RowConstants
  int64_t kernel_stride;
  PendingRows pending;  // of the first group
  int64_t first_key;    // the first rows that still count
  int64_t first_input;
  int64_t j;
  const float* q;  // of the first channel, also below
  const float* k;
  const float* v;
  float* o;
};

// Stores k, rounded to `Stored`, and u = ks v in row j, where ks = key_sums[j] + sum_i taps[i]
// keys[j - i], and gives o = q (sums[j] + sum_i K[i] inputs[j - i]). Meanwhile fetches into cache
// what the same of `next` reads, unless it is null. Stored: float or BF16.
template <typename Stored>
void StepChannels(const TokenStep& step, int64_t groups, const TokenStep* next);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_SCAN_H_
