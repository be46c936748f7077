// The two SSMs of an H3 layer as recurrences, on tiles: time along rows, 16 channels or rows of the
// layer in lanes.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_SCAN_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_SCAN_H_

#include <cstdint>

#include "kernels/cpu/h3/h3_layout.h"

namespace hippodrome::cpu {

// Constants of one mode of 16 rows, each [re | im, lanes]. States are kept divided by dB, so that
// x' = dA x' + u and y = Re sum_n w_n x'_n + D u with w = 2 C dB.
struct ModeConstants {
  float a[kModeFloats];  // dA
  float w[kModeFloats];  // 2 C dB
};

// Constants of 16 rows.
struct RowConstants {
  int64_t count = 0;                     // M
  const ModeConstants* modes = nullptr;  // [count]
  const float* skip = nullptr;           // [lanes], D
  const float* a_scan = nullptr;  // [count, re | im, lanes], dA^kScanSteps, a power taken in double
  const float* kernel = nullptr;  // [kScanSteps, lanes], K[0..], D added to K[0]
};

// y and the state after `blocks` blocks of kScanSteps inputs. u, y: [kScanSteps blocks, lanes];
// state: [modes, re | im, lanes].
void Scan(const RowConstants& rows, const float* u, float* y, int64_t blocks, float* state);

// The state alone. Meanwhile fetches the state at `ahead` into cache.
void Absorb(const RowConstants& rows, const float* u, int64_t blocks, float* state,
            const float* ahead);

// The state alone after any number of inputs [tokens, lanes], one after the other.
void AbsorbTokens(const RowConstants& rows, const float* u, int64_t tokens, float* state);

// What the state gives to the outputs of the next kScanSteps tokens, if they bring nothing
// themselves: y_i = Re sum_n w_n dA_n^(i+1) x_n.  y: [kScanSteps, lanes].
void LookAhead(const RowConstants& rows, const float* state, float* y);

// out = sum + sum_{i < count} kernel[i] x[count - 1 - i]: what the last `count` inputs give.
// kernel, x: [>= count, lanes]; sum, out: [lanes].
void AddRecent(const float* kernel, const float* x, int64_t count, const float* sum, float* out);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_SCAN_H_
