// BidirectionalAttention: tile by tile, or query by query for the shapes that tiles do not cover.
#include "kernels/cuda/attention/bidirectional_attention.cuh"

#include <cassert>

#include "kernels/cuda/attention/bidirectional_attention.h"
#include "kernels/cuda/base/launch.cuh"

namespace hippodrome::cuda {
namespace {

constexpr const char* kName = "attention_bidirectional";

template <typename T>
BidirectionalView<T> MakeView(const BidirectionalAttentionCall& call) {
  const AttentionView<T> view = {.qkv = static_cast<const T*>(call.qkv.data),
                                 .qkv_stride = call.qkv.stride,
                                 .o = static_cast<T*>(call.o.data),
                                 .o_stride = call.o.stride,
                                 .pages = nullptr,
                                 .page_tables = nullptr,
                                 .table_stride = 0,
                                 .rotary = {nullptr, 0},
                                 .heads = static_cast<int>(call.shape.heads),
                                 .head_dim = static_cast<int>(call.shape.head_dim),
                                 .page_tokens = 0};
  return {.view = view,
          .mask = static_cast<const int32_t*>(call.mask.data),
          .mask_stride = call.mask.stride,
          .tokens = static_cast<int>(call.mask.cols)};
}

// For each `queries` queries of each head of each sequence.
dim3 Blocks(const BidirectionalAttentionCall& call, int64_t queries) {
  return dim3(static_cast<unsigned>((call.mask.cols + queries - 1) / queries),
              static_cast<unsigned>(call.shape.heads), static_cast<unsigned>(call.mask.rows));
}

// Tiles of wider heads need more registers than a thread has.
constexpr int kWidestTile = 80;

// False if there are no tiles for the shape.
bool AttendByTiles(Device& device, const BidirectionalAttentionCall& call, float scale) {
  if (call.qkv.dtype != DType::kBF16 || call.shape.head_dim > kWidestTile) return false;
  const BidirectionalView<BF16> s = MakeView<BF16>(call);
  if (!IsAligned(s.view)) return false;
  return WithTiles(s.view.head_dim, [&](auto dim) {
    if constexpr (dim <= kWidestTile) {
      Launch(device, kName, AttendMaskedTiles<dim>,
             {.blocks = Blocks(call, kTileQueries),
              .threads = dim3(kTileWarps * kWarp),
              .shared_bytes = kMaskedTileShared<dim>},
             s, scale);
    }
  });
}

template <typename T>
void AttendByRows(Device& device, const BidirectionalAttentionCall& call, float scale) {
  const BidirectionalView<T> s = MakeView<T>(call);
  WithLayout<T>(s.view.head_dim, IsAligned(s.view), [&]<typename Layout>(Layout) {
    Launch(device, kName, AttendMaskedRows<T, Layout>,
           {.blocks = Blocks(call, 1),
            .threads = dim3(kQueryThreads),
            .shared_bytes = QueryShared(s.view.head_dim)},
           s, scale);
  });
}

}  // namespace

void BidirectionalAttention(Device& device, const BidirectionalAttentionCall& call) {
  assert(call.qkv.rows == call.mask.rows * call.mask.cols && call.o.rows == call.qkv.rows);
  assert(call.qkv.cols == 3 * call.shape.heads * call.shape.head_dim);
  assert(call.qkv.dtype == call.o.dtype);
  if (call.qkv.rows == 0) return;
  const float scale = ScoreScale(call.shape.head_dim);
  if (AttendByTiles(device, call, scale)) return;
  if (call.qkv.dtype == DType::kBF16) {
    AttendByRows<BF16>(device, call, scale);
  } else {
    AttendByRows<float>(device, call, scale);
  }
}

}  // namespace hippodrome::cuda
