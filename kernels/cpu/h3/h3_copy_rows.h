// Copies between rows of activations and tiles of kLanes channels, several neighbouring tiles at a
// time: memory comes in pairs of cache lines.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_COPY_ROWS_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_COPY_ROWS_H_

#include "kernels/cpu/h3/h3_tile.h"

namespace hippodrome::cpu {

// Neighbouring tiles [steps, kLanes], each `distance` floats after the one before.
struct TileRun {
  float* first = nullptr;
  int64_t count = 1;
  int64_t distance = 0;
};

// How rows are written: kStream goes past the caches, where the rows are read so late that they
// would have left them, so that nothing is fetched to be overwritten. Measured ns per line, pairs
// of columns of a matrix of 50 MB, Sapphire Rapids: 14 through the caches and 3 past them.
enum class StoreForm : uint8_t { kReplace, kAdd, kStream };

// tile i [t] = columns [i kLanes, (i + 1) kLanes) of row t, rows `stride` floats apart.
void RowsToTiles(TileRows from, int64_t steps, TileRun to);

// The reverse. REQUIRES for kStream: rows are aligned to 64 bytes.
void TilesToRows(TileRun from, int64_t steps, StoreForm form, float* to, int64_t stride);

// Must follow kStream on its thread before another thread is told.
void FinishStreams();

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_COPY_ROWS_H_
