// Microkernels of tiles of bf16 and of bytes in the matrix registers of Intel's processors (AMX),
// and the ways into these tiles.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_MICROKERNEL_AMX_H_
#define HIPPODROME_KERNELS_CPU_GEMM_MICROKERNEL_AMX_H_

#include <cstdint>

#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/dtype.h"

namespace hippodrome::cpu {

// A left operand of `rows` by `depth` values is read in tiles of 16 rows by 32 values, zero beyond
// `depth`, anything beyond `rows`.
inline constexpr int64_t kAmxRows = 16;
inline constexpr int64_t kAmxDepth = 32;
inline constexpr int64_t kAmxTile = kAmxRows * kAmxDepth;

// Whether this process may use the matrix registers, for bf16 and for bytes; asks the system for
// them the first time.
bool HaveAmx();
bool HaveInt8Amx();

// Prepares the matrix registers of this thread, and gives them back. REQUIRES: HaveAmx().
class AmxRegisters {
 public:
  AmxRegisters();
  ~AmxRegisters();
  AmxRegisters(const AmxRegisters&) = delete;
  AmxRegisters& operator=(const AmxRegisters&) = delete;
};

// 16 rows by a panel of 64 columns:
//   sums[r][c] = (accumulate ? sums[r][c] : 0) + sum_k a[r][k] panel[k][c]
// in rows of 64 sums. Each sum is one chain over steps of 32 k, the products of a step being added
// in an order of the processor's own: it is the same wherever the chain is cut between steps.
// Subnormal numbers count as zero. REQUIRES: AmxRegisters in this thread.
struct AmxBlock {
  const BF16* a;      // of the first tile
  int64_t a_row;      // elements from a row of a tile to the next
  int64_t a_step;     // from a tile to that of the next step
  const BF16* panel;  // [steps][16][64][2]
  int64_t steps;
  bool accumulate;
  bool fetch;  // the panel, and what lies behind it, comes meanwhile into the second-level cache
  float* sums;
};
void MultiplyAmxTile(const AmxBlock& block);

// MicrokernelQuantizedDot() of up to kInt8AmxRows rows, with the same bits, which fetches nothing.
// Reads 16 or 32 rows of `a`, whatever is in those past tile.rows. REQUIRES: HaveInt8Amx(),
// AmxRegisters in this thread.
inline constexpr int kInt8AmxRows = 32;
void MicrokernelInt8Amx(const QuantizedTile<Int8Panel>& tile);

// Rounds rows of n floats to bf16, to nearest even, into tiles [ceil(n / 32)][16][32]. REQUIRES:
// HaveAmx().
void RoundToAmxTiles(const float* x, int64_t stride, int64_t rows, int64_t n, BF16* tiles);

// Both tile forms of a gradient: its rows, for dx = dz W, and its columns, for dW = dz^T x.

// At most 32 rows by 32 columns of f32.
struct GradientBlock {
  const float* values;  // rows of `stride`
  int64_t stride;
  int64_t rows;
  int64_t cols;
};

// Rounds a block to bf16, to nearest even, with zeros beyond it, into two tiles of its rows and two
// of its columns, and adds the sums of its columns to `sums` [cols]. REQUIRES:
// HaveAmx().
struct GradientTiles {
  BF16* rows[2];
  BF16* columns[2];
  float* sums;
};
void StoreGradient(const GradientBlock& block, const GradientTiles& tiles);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_MICROKERNEL_AMX_H_
