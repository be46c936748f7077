#include "kernels/cpu/h3/h3_prefill.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/conv/direct_conv.h"
#include "kernels/cpu/h3/h3_layout.h"
#include "kernels/cpu/h3/h3_scan.h"

namespace hippodrome::cpu {
namespace {

// Tokens scanned at a time: inputs and outputs of 16 rows fit the first cache.
constexpr int64_t kScanTokens = 256;
// Measured on Zen 5, one thread, per point: both transforms 0.6 ns and Absorb 0.6 ns, Scan
// 1.5 ns. So the transform wins for long runs from an empty state; with a state to add, Scan does.
constexpr int64_t kShortestTransform = 224;

// Working memory of one group.
struct Buffers {
  explicit Buffers(const H3Layout& layout, const FftPlan& plan)
      : history_floats((layout.padded_taps() + kKernelPoints + kScanSteps) * kTileChannels) {
    const int64_t tile = kKernelPoints * kTileChannels;
    const int64_t panel = layout.channel_blocks * tile + kScanSteps * kTileChannels;
    const int64_t sizes[] = {layout.channel_blocks * history_floats,
                             panel,
                             panel,
                             panel,
                             panel,
                             tile,
                             tile,
                             2 * tile,
                             plan.work_floats()};
    int64_t total = 0;
    for (const int64_t size : sizes) total += size;
    float* next = ThreadScratch<float>(ScratchUse::kH3Tile, total);
    float** const parts[] = {&history, &ks, &v, &q, &o, &u, &y, &spectrum, &work};
    for (size_t i = 0; i < std::size(parts); ++i) {
      *parts[i] = next;
      next += sizes[i];
    }
  }

  int64_t history_floats;  // per channel block
  float* history;          // [channel blocks, padded taps + tokens, lanes] raw k
  float* ks;               // panels
  float* v;
  float* q;
  float* o;
  float* u;  // tiles of one row block
  float* y;
  float* spectrum;
  float* work;
};

// All tokens of one group of channels.
class GroupSequence {
 public:
  GroupSequence(const H3PrefillWeights& constants, int64_t group, Tensor qkv, Tensor o)
      : constants_(constants),
        layout_(constants.layout()),
        group_(group),
        qkv_(qkv),
        o_(o),
        buffers_(layout_, constants.plan()) {}

  void Run(float* state, int64_t start) {
    float* modes = state + layout_.channel_blocks * layout_.ring_floats();
    const int64_t next = start % layout_.taps;
    LoadHistory(state, next);
    int64_t done = 0;
    if (start == 0 && qkv_.rows >= kShortestTransform) {
      done = std::min(qkv_.rows, kKernelPoints);
      Segment(0, done, /*transform=*/true, modes);
    }
    for (int64_t tokens; done < qkv_.rows; done += tokens) {
      tokens = std::min(qkv_.rows - done, kScanTokens);
      Segment(done, tokens, /*transform=*/false, modes);
    }
    StoreHistory(state, next);
  }

 private:
  // The padded_taps() inputs before the first token, oldest first.
  void LoadHistory(const float* rings, int64_t next) {
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      const float* ring = rings + c * layout_.ring_floats();
      float* row = buffers_.history + c * buffers_.history_floats;
      for (int64_t ago = layout_.padded_taps(); ago > 0; --ago, row += kTileChannels) {
        const int64_t at = (next - ago + 2 * layout_.taps) % layout_.taps;
        if (ago > layout_.taps) std::fill_n(row, kTileChannels, 0.0f);
        if (ago <= layout_.taps) std::copy_n(ring + at * kTileChannels, kTileChannels, row);
      }
    }
  }

  void StoreHistory(float* rings, int64_t next) {
    const int64_t last = next + qkv_.rows;
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      float* ring = rings + c * layout_.ring_floats();
      const float* end =
          buffers_.history + c * buffers_.history_floats + layout_.padded_taps() * kTileChannels;
      for (int64_t ago = 1; ago <= std::min(qkv_.rows, layout_.taps); ++ago) {
        std::copy_n(end - ago * kTileChannels, kTileChannels,
                    ring + (last - ago) % layout_.taps * kTileChannels);
      }
    }
  }

  TileRows Columns(int64_t which, int64_t token) const {
    return {F32Row(qkv_, token) + which * layout_.d_model + layout_.FirstChannel(group_),
            qkv_.stride};
  }

  void Segment(int64_t token, int64_t tokens, bool transform, float* modes) {
    ShiftSsm(token, tokens);
    if (layout_.head_dim == 1 && layout_.Channels(group_) == kTileChannels) {
      MultiplyRows({buffers_.ks, kTileChannels}, Columns(2, token), tokens, buffers_.u,
                   kTileChannels);
      DiagonalSsm(0, tokens, transform, modes);
      MultiplyRows({buffers_.y, kTileChannels}, Columns(0, token), tokens,
                   F32Row(o_, token) + layout_.FirstChannel(group_), o_.stride);
      return;
    }
    LoadPanel(layout_, group_, Columns(0, token), tokens, buffers_.q);
    LoadPanel(layout_, group_, Columns(2, token), tokens, buffers_.v);
    std::fill_n(buffers_.o, layout_.channel_blocks * tokens * kTileChannels, 0.0f);
    for (int64_t r = 0; r < layout_.row_blocks; ++r) {
      ExpandRows(layout_, group_, r, buffers_.ks, buffers_.v, tokens, buffers_.u);
      DiagonalSsm(r, tokens, transform, modes + r * layout_.block_state_floats());
      ContractRows(layout_, group_, r, buffers_.q, buffers_.y, tokens, buffers_.o);
    }
    StorePanel(layout_, group_, buffers_.o, tokens, F32Row(o_, token), o_.stride);
  }

  // ks of the segment; then its last inputs become the history of the next one.
  void ShiftSsm(int64_t token, int64_t tokens) {
    const int64_t taps = layout_.padded_taps();
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      float* history = buffers_.history + c * buffers_.history_floats;
      const TileRows k = Columns(1, token);
      const int64_t width =
          std::clamp<int64_t>(layout_.Channels(group_) - c * kTileChannels, 0, kTileChannels);
      LoadBlock({k.data + c * kTileChannels, k.stride}, width, tokens,
                history + taps * kTileChannels);
      Fir(constants_.Taps(group_, c), taps, history + taps * kTileChannels, tokens,
          buffers_.ks + c * tokens * kTileChannels);
      std::copy_n(history + tokens * kTileChannels, taps * kTileChannels, history);
    }
  }

  // y of one row block from u, and its state.
  void DiagonalSsm(int64_t row_block, int64_t tokens, bool transform, float* state) {
    const RowConstants rows = constants_.Rows(group_, row_block);
    const int64_t blocks = tokens / kScanSteps;
    if (transform) {
      Convolve(row_block, tokens);
      Absorb(rows, buffers_.u, blocks, state);
    } else {
      Scan(rows, buffers_.u, buffers_.y, blocks, state);
    }
    for (int64_t t = blocks * kScanSteps; t < tokens; ++t) {
      Step(rows, buffers_.u + t * kTileChannels, buffers_.y + t * kTileChannels, state, state);
    }
  }

  void Convolve(int64_t row_block, int64_t tokens) {
    std::fill_n(buffers_.u + tokens * kTileChannels, (kKernelPoints - tokens) * kTileChannels,
                0.0f);
    const FftPlan& plan = constants_.plan();
    const TimeSeries kernel = TileSeries(constants_.Kernel(group_, row_block), kKernelPoints);
    TransformTile(plan, kernel, buffers_.spectrum, buffers_.work);
    ConvolveTile(plan, buffers_.spectrum, TileSeries(buffers_.u, kKernelPoints),
                 TileSeries(buffers_.y, kKernelPoints), nullptr, buffers_.work);
  }

  const H3PrefillWeights& constants_;
  const H3Layout& layout_;
  const int64_t group_;
  const Tensor qkv_;
  const Tensor o_;
  const Buffers buffers_;
};

}  // namespace

void H3Sequence(ThreadPool& pool, const H3PrefillWeights& constants, Tensor qkv, H3Slots& state,
                int64_t slot, int64_t start, Tensor o) {
  const H3Layout& layout = constants.layout();
  assert(qkv.cols == 3 * layout.d_model && o.cols == layout.d_model && o.rows == qkv.rows);
  pool.Run(layout.groups, [&](int64_t group, int) {
    GroupSequence(constants, group, qkv, o).Run(state.Group(slot, group), start);
  });
}

}  // namespace hippodrome::cpu
