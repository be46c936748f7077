// The SSMs of decoders as recurrences, token by token, 16 channels in lanes.
//
// A token goes through the same operations whether it comes alone or among others: where a sequence
// is cut changes no bit, and a state that was stepped to is the state of a prefill.
#ifndef HIPPODROME_KERNELS_CPU_SSM_SSM_SCAN_H_
#define HIPPODROME_KERNELS_CPU_SSM_SSM_SCAN_H_

#include <cstdint>

#include "kernels/cpu/conv/tile.h"

namespace hippodrome::cpu {

// A complex number of each of 16 channels.
struct LaneComplex {
  float re[kTileChannels];
  float im[kTileChannels];
};

// x' = a x + u; y = Re sum_n w_n x'_n + D u.
struct DiagonalMode {
  LaneComplex a, w;
};
// Modes come in groups of so many, whose chains of sums run side by side; those without constants
// are zero and stay so.
inline constexpr int64_t kModesTogether = 4;

// x' = d x - p r + b u with r = Re sum_n v_n x_n; y = Re sum_n c_n x'_n + D u. That is a step of dA
// = diag(d) - p v, of normal plus low-rank form, by O(M) operations. It is not diagonalised: the
// eigenvectors of HiPPO-LegS, where training starts, grow exponentially with its size (S4, lemma
// 3.2), and f32 would lose every digit.
struct LowRankMode {
  LaneComplex d, p, v, b, c;
};

// Of 16 channels.
template <typename Mode>
struct ScanConstants {
  const Mode* modes = nullptr;  // [count]
  int64_t count = 0;
  const float* skip = nullptr;  // [lanes], D
};

// y and the state after `tokens` inputs. u, y: [tokens, lanes]; state: [count].
void ScanSsm(const ScanConstants<DiagonalMode>& ssm, const float* u, float* y, int64_t tokens,
             LaneComplex* state);
void ScanSsm(const ScanConstants<LowRankMode>& ssm, const float* u, float* y, int64_t tokens,
             LaneComplex* state);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_SSM_SSM_SCAN_H_
