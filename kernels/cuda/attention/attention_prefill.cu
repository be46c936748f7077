// AttentionSequence: stores the new keys and values, then attends tile by tile, or query by query
// for the shapes that tiles do not cover.
#include "kernels/cuda/attention/attention_tile.cuh"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/sequence_parts.h"

namespace hippodrome::cuda {
namespace {

constexpr const char* kName = "attention_sequence";

template <typename T>
void StoreRows(Device& device, const SequenceView<T>& s, int64_t rows) {
  const Grid grid = {.blocks = dim3(static_cast<unsigned>(rows)), .threads = dim3(kStoreThreads)};
  if (IsAligned(s.view)) {
    Launch(device, "attention_store", StoreKeyValueRows<T, kVector<T>>, grid, s);
  } else {
    Launch(device, "attention_store", StoreKeyValueRows<T, 1>, grid, s);
  }
}

template <int kHeadDim>
void LaunchTiles(Device& device, const SequenceView<BF16>& s, int64_t longest, float scale) {
  const int64_t blocks = (longest + kTileQueries - 1) / kTileQueries;
  const Grid grid = {
      .blocks = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(s.view.heads),
                     static_cast<unsigned>(s.part_count)),
      .threads = dim3(kTileWarps * kWarp),
      .shared_bytes = kTileShared<kHeadDim>};
  Launch(device, kName, AttendTiles<kHeadDim>, grid, s, scale);
}

// longest: tokens of the longest part. False if there are no tiles for the shape.
bool AttendByTiles(Device& device, const SequenceView<BF16>& s, int64_t longest, float scale) {
  if (!IsAligned(s.view) || s.view.page_tokens != kTileKeys) return false;
  return WithTiles(s.view.head_dim, [&](auto dim) { LaunchTiles<dim>(device, s, longest, scale); });
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
  const SequenceView<T> s = {.view = MakeView<T>(call),
                             .parts = CopyParts(device, call.parts),
                             .part_count = static_cast<int32_t>(call.parts.size())};
  const SequencePart& last = call.parts.back();
  const int64_t rows = last.first_row + last.tokens - call.parts.front().first_row;
  StoreRows(device, s, rows);
  const float scale = ScoreScale(call.shape.head_dim);
  if (AttendByTiles(device, s, LongestPart(call.parts), scale)) return;
  AttendByRows(device, s, rows, scale);
}

}  // namespace

void AttentionSequence(Device& device, const AttentionSequenceCall& call) {
  if (call.parts.empty()) return;
  assert(call.page_tables.rows == static_cast<int64_t>(call.parts.size()));
  assert(std::all_of(call.parts.begin(), call.parts.end(), [&](const SequencePart& part) {
    return part.start + part.tokens - call.shape.FirstSeen(part.start) <=
           call.page_tables.cols * call.pages.page_tokens();
  }));
  assert(call.shape.window == 0 || call.pages.page_tokens() == kWindowBlock);
  assert(call.qkv.dtype == call.pages.dtype() && call.o.dtype == call.pages.dtype());
  if (call.pages.dtype() == DType::kBF16) {
    Attend<BF16>(device, call);
  } else {
    Attend<float>(device, call);
  }
}

}  // namespace hippodrome::cuda
