// How the channels of an H3 layer are laid out in vector lanes.
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
#include "kernels/cpu/conv/fft_plan.h"

namespace hippodrome::cpu {

inline constexpr int64_t kLanes = kTileChannels;
inline constexpr int64_t kModeFloats = 2 * kLanes;  // one complex mode of a block, re | im

struct H3Layout {
  explicit H3Layout(const H3Parameters& p)
      : d_model(p.d_model),
        head_dim(p.head_dim),
        heads(p.d_model / p.head_dim),
        taps(p.d_state),
        modes(p.d_state / 2),
        output_order(p.output_order),
        group_heads(std::max<int64_t>(1, kLanes / head_dim)),
        groups((heads + group_heads - 1) / group_heads),
        channel_blocks((group_heads * head_dim + kLanes - 1) / kLanes),
        row_blocks((group_heads * head_dim * head_dim + kLanes - 1) / kLanes) {}

  // Channels of group g: FirstChannel(g) ... + Channels(g).
  int64_t FirstChannel(int64_t group) const { return group * group_heads * head_dim; }
  int64_t Channels(int64_t group) const {
    return std::min(group_heads * head_dim, d_model - FirstChannel(group));
  }
  int64_t Rows(int64_t group) const { return Channels(group) * head_dim; }

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

  // The state of a group: for each channel block a ring of the last `taps` inputs [taps, lanes],
  // then for each row block the modes x / dB [modes, re | im, lanes].
  int64_t ring_floats() const { return taps * kLanes; }
  int64_t block_state_floats() const { return modes * kModeFloats; }
  int64_t group_state_floats() const {
    return channel_blocks * ring_floats() + row_blocks * block_state_floats();
  }

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

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_LAYOUT_H_
