// AttentionSequence: stores the new keys and values, then attends tile by tile, or query by query
// for the shapes that tiles do not cover.
#include "kernels/cuda/attention/attention_tile.cuh"

#include <cassert>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/base/launch.cuh"

namespace hippodrome::cuda {
namespace {

constexpr const char* kName = "attention_sequence";

template <typename T>
void StoreRows(Device& device, const SequenceView<T>& s, int64_t rows) {
  const Grid grid = {.blocks = dim3(static_cast<unsigned>(rows)), .threads = dim3(kStoreThreads)};
  if (IsAligned(s.view)) {
    Launch(device, kName, StoreKeyValueRows<T, kVector<T>>, grid, s);
  } else {
    Launch(device, kName, StoreKeyValueRows<T, 1>, grid, s);
  }
}

template <int kHeadDim>
void LaunchTiles(Device& device, const SequenceView<BF16>& s, int64_t sequences, float scale) {
  const int64_t blocks = (s.tokens + kTileQueries - 1) / kTileQueries;
  const Grid grid = {
      .blocks = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(s.view.heads),
                     static_cast<unsigned>(sequences)),
      .threads = dim3(kTileWarps * kWarp),
      .shared_bytes = kTileShared<kHeadDim>};
  Launch(device, kName, AttendTiles<kHeadDim>, grid, s, scale);
}

// False if there are no tiles for the shape.
bool AttendByTiles(Device& device, const SequenceView<BF16>& s, int64_t sequences, float scale) {
  if (!IsAligned(s.view) || s.view.page_tokens != kTileKeys) return false;
  return WithTiles(s.view.head_dim,
                   [&](auto dim) { LaunchTiles<dim>(device, s, sequences, scale); });
}
bool AttendByTiles(Device&, const SequenceView<float>&, int64_t, float) { return false; }

template <typename T>
void AttendByRows(Device& device, const SequenceView<T>& s, int64_t rows, float scale) {
  WithLayout<T>(s.view.head_dim, /*aligned=*/true, [&]<typename Layout>(Layout) {
    const Grid grid = {
        .blocks = dim3(static_cast<unsigned>(rows), static_cast<unsigned>(s.view.heads)),
        .threads = dim3(kQueryThreads),
        .shared_bytes = QueryShared(s.view.head_dim)};
    Launch(device, kName, AttendRows<T, Layout>, grid, s, scale);
  });
}

template <typename T>
void Attend(Device& device, const AttentionSequenceCall& call) {
  const int64_t sequences = call.page_tables.rows;
  const SequenceView<T> s = {
      .view = MakeView<T>(call), .tokens = call.qkv.rows / sequences, .start = call.start};
  StoreRows(device, s, call.qkv.rows);
  const float scale = ScoreScale(call.shape.head_dim);
  if (AttendByTiles(device, s, sequences, scale)) return;
  AttendByRows(device, s, call.qkv.rows, scale);
}

}  // namespace

void AttentionSequence(Device& device, const AttentionSequenceCall& call) {
  if (call.qkv.rows == 0) return;
  assert(call.qkv.rows % call.page_tables.rows == 0);
  assert(call.start + call.qkv.rows / call.page_tables.rows <=
         call.page_tables.cols * call.pages.page_tokens());
  assert(call.qkv.dtype == call.pages.dtype() && call.o.dtype == call.pages.dtype());
  if (call.pages.dtype() == DType::kBF16) {
    Attend<BF16>(device, call);
  } else {
    Attend<float>(device, call);
  }
}

}  // namespace hippodrome::cuda
