// Between channels and rows of a group, for any number of time steps.
//
// A "panel" holds the channels of a group in blocks: [channel_blocks, steps, lanes].
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_ROWS_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_ROWS_H_

#include "kernels/cpu/h3/h3_layout.h"
#include "kernels/cpu/h3/h3_tile.h"

namespace hippodrome::cpu {

// One channel block of a panel from rows of activations, lanes beyond `width` zero.
void LoadBlock(TileRows from, int64_t width, int64_t steps, float* block);

// Loads the columns of a group into a panel.  from: column of the group's first channel.
void LoadPanel(const H3Layout& layout, int64_t group, TileRows from, int64_t steps, float* panel);

// u[t, row] = k[t, KeyChannel(row)] v[t, ValueChannel(row)] for the rows of a block.
void ExpandRows(const H3Layout& layout, int64_t group, int64_t row_block, const float* k,
                const float* v, int64_t steps, float* u);

// o[t, ValueChannel(row)] += q[t, KeyChannel(row)] y[t, row] for the rows of a block.
void ContractRows(const H3Layout& layout, int64_t group, int64_t row_block, const float* q,
                  const float* y, int64_t steps, float* o);

// Writes a panel to rows of activations in the layer's output order.  to: column 0.
void StorePanel(const H3Layout& layout, int64_t group, const float* panel, int64_t steps, float* to,
                int64_t to_stride);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_ROWS_H_
