// The two SSMs of an H3 layer as recurrences, on tiles: time along rows, 16 channels or rows of the
// layer in lanes.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_SCAN_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_SCAN_H_

#include <cstdint>

#include "kernels/cpu/h3/h3_layout.h"

namespace hippodrome::cpu {

inline constexpr int64_t kScanSteps = 8;  // time steps that Scan advances at a time

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

// The state alone.
void Absorb(const RowConstants& rows, const float* u, int64_t blocks, float* state);

// y and the state after one input. u, y: [lanes]. Meanwhile fetches the state at `ahead` into
// cache.
void Step(const RowConstants& rows, const float* u, float* y, float* state, const float* ahead);

// sum_j taps[j] ring[(newest - j) mod size], j < size.  ring: [size, lanes]; out: [lanes].
// Meanwhile fetches the ring at `ahead` into cache.
void RingDot(const float* taps, const float* ring, int64_t size, int64_t newest, float* out,
             const float* ahead);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_SCAN_H_
