#include "kernels/cpu/ssm/ssm_sequence.h"

#include <algorithm>
#include <cassert>
#include <span>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/conv/tile.h"

namespace hippodrome::cpu {
namespace {

// Inputs and outputs of a tile stay in the first cache.
constexpr int64_t kScanTokens = 128;

// One tile of channels of some sequences.
class TileScan {
 public:
  TileScan(const SsmConstants& constants, int64_t tile, Tensor u, Tensor y)
      : constants_(constants),
        tile_(tile),
        u_(u),
        y_(y),
        in_(ThreadScratch<float>(ScratchUse::kSsmTile, 2 * kScanTokens * kTileChannels)),
        out_(in_ + kScanTokens * kTileChannels) {}

  // `captures`: of this part.
  void Run(const SequencePart& part, std::span<const StateCapture> captures, SsmSlots& state) {
    int64_t done = 0;
    for (const StateCapture& capture : captures) {
      Rows(part.first_row + done, capture.tokens - done, state.Tile(part.slot, tile_));
      state.CopyTile(part.slot, capture.to, tile_);
      done = capture.tokens;
    }
    Rows(part.first_row + done, part.tokens - done, state.Tile(part.slot, tile_));
  }

  void Rows(int64_t row, int64_t tokens, LaneComplex* state) {
    for (int64_t end = row + tokens; row < end; row += kScanTokens) {
      const int64_t count = std::min(kScanTokens, end - row);
      LoadTile(Series(u_, row, count), 0, count, in_);
      constants_.Scan(tile_, in_, out_, count, state);
      StoreTile(out_, false, Series(y_, row, count));
    }
  }

 private:
  TimeSeries Series(const Tensor& matrix, int64_t row, int64_t tokens) const {
    const SsmLayout& layout = constants_.layout();
    return {.first = F32Row(matrix, row) + layout.First(tile_),
            .step = matrix.stride,
            .tokens = tokens,
            .width = layout.Width(tile_)};
  }

  const SsmConstants& constants_;
  const int64_t tile_;
  const Tensor u_;
  const Tensor y_;
  float* in_;
  float* out_;
};

}  // namespace

void SsmSequence(ThreadPool& pool, const SsmConstants& constants, Tensor u, SsmSlots& state,
                 const SequenceParts& parts, Tensor y) {
  const SsmLayout& layout = constants.layout();
  assert(u.cols == layout.channels && y.cols == layout.channels && y.rows == u.rows);
  const int64_t tiles = layout.tiles();
  pool.Run(std::ssize(parts.parts) * tiles, [&](int64_t index, int) {
    const int64_t part = index / tiles;
    const SequencePart& of = parts.parts[static_cast<size_t>(part)];
    if (of.slot < 0) return;
    TileScan(constants, index % tiles, u, y).Run(of, CapturesOf(parts, part), state);
  });
}

// Tasks of neighbouring rows of a tile, whose constants stay in cache; enough of them to even out.
void SsmStep(ThreadPool& pool, const SsmConstants& constants, Tensor u, SsmSlots& state,
             Tensor slots, Tensor y) {
  constexpr int64_t kTasksPerThread = 8;
  assert(u.cols == constants.layout().channels && slots.cols == u.rows && y.rows == u.rows);
  const int32_t* slot = I32Row(slots, 0);
  const int64_t count = constants.layout().tiles() * u.rows;
  const int64_t tasks = std::min(count, kTasksPerThread * pool.threads());
  pool.Run(tasks, [&](int64_t task, int) {
    for (int64_t i = task * count / tasks; i < (task + 1) * count / tasks; ++i) {
      const int64_t tile = i / u.rows;
      const int64_t row = i % u.rows;
      if (slot[row] < 0) continue;
      TileScan(constants, tile, u, y).Rows(row, 1, state.Tile(slot[row], tile));
    }
  });
  for (int64_t row = 0; row < u.rows; ++row) {
    if (slot[row] < 0) std::fill_n(F32Row(y, row), y.cols, 0.0f);
  }
}

}  // namespace hippodrome::cpu
