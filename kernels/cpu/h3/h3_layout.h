// How the channels of an H3 layer are laid out in vector lanes, and the ways between this layout
// and matrices of activations.
//
// The layer runs on rows, one for each pair (d1, d2) of each head: row (head, d1, d2) convolves
// k[head, d1] v[head, d2] with the kernel of its head. With head_dim 1 a row is a channel. A group
// is a run of whole heads that one thread works on: about 16 channels, its channels and its rows
// each padded to blocks of 16 lanes. Padding lanes have zero constants and stay zero.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_LAYOUT_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_LAYOUT_H_

#include <algorithm>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cpu/conv/tile.h"
#include "kernels/dtype.h"

namespace hippodrome::cpu {

inline constexpr int64_t kModeFloats = 2 * kTileChannels;  // one complex mode of a block, re | im
// Tokens that are taken into a state at a time: those of a block, from a multiple of it on.
inline constexpr int64_t kScanSteps = 8;
inline constexpr int64_t kBlockFloats = kScanSteps * kTileChannels;  // a row for each of them

struct H3Layout {
  explicit H3Layout(const H3Parameters& p)
      : d_model(p.d_model),
        head_dim(p.head_dim),
        heads(p.d_model / p.head_dim),
        taps(p.d_state),
        modes(p.d_state / 2),
        output_order(p.output_order),
        group_heads(std::max<int64_t>(1, kTileChannels / head_dim)),
        groups((heads + group_heads - 1) / group_heads),
        channel_blocks((group_heads * head_dim + kTileChannels - 1) / kTileChannels),
        row_blocks((group_heads * head_dim * head_dim + kTileChannels - 1) / kTileChannels) {}

  // Channels of group g: FirstChannel(g) ... + Channels(g).
  int64_t FirstChannel(int64_t group) const { return group * group_heads * head_dim; }
  int64_t Channels(int64_t group) const {
    return std::min(group_heads * head_dim, d_model - FirstChannel(group));
  }
  int64_t Rows(int64_t group) const { return Channels(group) * head_dim; }
  // Whether each lane of group g is a head of one channel.
  bool OneChannelPerLane(int64_t group) const {
    return head_dim == 1 && Channels(group) == kTileChannels;
  }

  // Of a row of a group: its head, and the channels of its k (also its q) and its v, in the group.
  int64_t Head(int64_t row) const { return row / (head_dim * head_dim); }
  int64_t KeyChannel(int64_t row) const { return row / head_dim; }
  int64_t ValueChannel(int64_t row) const { return Head(row) * head_dim + row % head_dim; }

  // Where the layer's output puts channel head * head_dim + d2.
  int64_t OutputChannel(int64_t channel) const {
    if (output_order == H3OutputOrder::kHeadD2) return channel;
    return channel % head_dim * heads + channel / head_dim;
  }

  // Taps in memory, a multiple of the four that are applied at a time.
  int64_t padded_taps() const { return (taps + 3) / 4 * 4; }

  // Of one channel block the ring of the last `taps` inputs, of one row block the modes.
  int64_t ring_values() const { return taps * kTileChannels; }
  int64_t modes_values() const { return modes * kModeFloats; }

  int64_t d_model;
  int64_t head_dim;
  int64_t heads;
  int64_t taps;   // N
  int64_t modes;  // M
  H3OutputOrder output_order;
  int64_t group_heads;
  int64_t groups;
  int64_t channel_blocks;  // per group
  int64_t row_blocks;      // per group
};

// Rows of the tokens of a block, some groups side by side: the token at position p has row p mod
// kScanSteps.
struct TokenRows {
  float* At(int64_t row, int64_t block) const {
    return data + row * stride + block * kTileChannels;
  }

  float* data;
  int64_t stride;
};

// The tokens of a block that are pending, and what was looked ahead for the others.
struct PendingRows {
  TokenRows keys;      // [channel blocks, lanes], k
  TokenRows key_sums;  // F of h3_block.h
  TokenRows inputs;    // [row blocks, lanes], kv
  TokenRows sums;      // Y of h3_block.h
};

// Rows of activations, `stride` floats apart, or those of a tile: stride kTileChannels.
struct TileRows {
  const float* data = nullptr;
  int64_t stride = 0;
};

// out[t] = a[t] b[t], 16 floats each.
void MultiplyRows(TileRows a, TileRows b, int64_t steps, float* out, int64_t out_stride);

// A "panel" holds the channels of a group in blocks: [channel_blocks, steps, lanes].

// One channel block of a panel from rows of activations, lanes beyond `width` zero.
void LoadBlock(TileRows from, int64_t width, int64_t steps, float* block);

// Each of some rows of lanes as the nearest value of `Stored`, float or BF16.
template <typename Stored>
void RoundTo(int64_t rows, float* values);

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

// Groups that a thread takes together, so that it uses the pairs of cache lines that memory comes
// in. Measured ns per line, columns of a matrix of 50 MB, Sapphire Rapids: 20 for one group, 10 for
// two, 9 for four.
inline constexpr int64_t kGroupsTogether = 2;

// Some groups [begin, end), the panels of each `distance` floats after those of the one before.
struct GroupRun {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t distance = 0;
};

// How rows are written: kStream goes past the caches, where the rows are read so late that they
// would have left them, so that nothing is fetched to be overwritten. Measured ns per line, pairs
// of columns of a matrix of 50 MB, Sapphire Rapids: 14 through the caches and 3 past them.
enum class StoreForm : uint8_t { kReplace, kAdd, kStream };

// The panels of channels of `from`, some rows of a matrix of d columns, in their order or in the
// layer's output order.
void LoadPanels(const H3Layout& layout, const GroupRun& groups, Tensor from, float* panels);
void LoadOutputPanels(const H3Layout& layout, const GroupRun& groups, Tensor from, float* panels);

// The reverse. Rows of kStream are aligned to 64 bytes, or it falls back to kReplace.
void StorePanels(const H3Layout& layout, const GroupRun& groups, const float* panels,
                 StoreForm form, Tensor to);
void StoreOutputPanels(const H3Layout& layout, const GroupRun& groups, const float* panels,
                       StoreForm form, Tensor to);

// kStream where `matrix` is too large to stay in the caches and rows are aligned, else kReplace.
StoreForm FormFor(const Tensor& matrix);
// Must follow kStream on its thread before another thread is told.
void FinishStreams();

// The gradient of ExpandRows() in its k, for the rows of a block:
//   dk[t, KeyChannel(row)] += du[t, row] v[t, ValueChannel(row)]
void ContractKeys(const H3Layout& layout, int64_t group, int64_t row_block, const float* v,
                  const float* du, int64_t steps, float* dk);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_LAYOUT_H_
