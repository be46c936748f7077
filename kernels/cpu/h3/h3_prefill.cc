#include "kernels/cpu/h3/h3_prefill.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/conv/direct_conv.h"
#include "kernels/cpu/h3/h3_block.h"
#include "kernels/cpu/h3/h3_layout.h"
#include "kernels/cpu/h3/h3_scan.h"

namespace hippodrome::cpu {
namespace {

// Tokens scanned at a time: inputs and outputs of 16 rows fit the first cache.
constexpr int64_t kScanTokens = 256;
// Measured on Zen 5, one thread, per point: both transforms 0.6 ns and Absorb 0.6 ns, Scan
// 1.5 ns. So the transform wins from an empty state; with a state to add, Scan does.
static_assert(kTransformTokens == kKernelPoints);
static_assert(kCaptureTokens == kScanSteps && kScanTokens % kScanSteps == 0);

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

// The padded_taps() inputs before the one that goes to row `next` of a ring, oldest first; zeros
// beyond `taps` of them.
template <typename Stored>
void UnrollRing(const H3Layout& layout, const Stored* ring, int64_t next, float* history) {
  const int64_t zeros = layout.padded_taps() - layout.taps;
  history = std::fill_n(history, zeros * kTileChannels, 0.0f);
  const int64_t newer = next * kTileChannels;
  const int64_t older = layout.ring_values() - newer;
  CopyValues(ring + newer, older, history);
  CopyValues(ring, newer, history + older);
}

// The states of a part that are copied on the way.
using Captures = std::span<const StateCapture>;

// All tokens of one part in one group of channels. Stored: of the states, float or BF16.
template <typename Stored>
class GroupSequence {
 public:
  // qkv, o: the rows of the part.
  GroupSequence(const H3PrefillWeights& constants, int64_t group, Tensor qkv, Tensor o)
      : constants_(constants),
        layout_(constants.layout()),
        group_(group),
        qkv_(qkv),
        o_(o),
        buffers_(layout_, constants.plan()) {}

  void Run(const H3Slots& slots, const SequencePart& part, Captures captures) {
    const GroupState<Stored> state = slots.Group<Stored>(part.slot, group_);
    const int64_t head = std::min((kScanSteps - part.start % kScanSteps) % kScanSteps, qkv_.rows);
    Steps(state, part.start, 0, head);
    const int64_t whole = (qkv_.rows - head) / kScanSteps * kScanSteps;
    if (whole > 0 || !captures.empty()) {
      Settle(constants_, group_, state, part.start + head);
      Blocks(slots, part, captures, head, whole);
    }
    Steps(state, part.start, head + whole, qkv_.rows);
  }

 private:
  enum class Method : uint8_t { kTransform, kScan };

  // Tokens that are taken by one method.
  struct Stretch {
    int64_t tokens;
    Method method;
  };

  // Tokens [begin, end) one by one.
  void Steps(const GroupState<Stored>& state, int64_t start, int64_t begin, int64_t end) const {
    if (begin == end) return;
    const H3Block<Stored> block(constants_, group_);
    for (int64_t t = begin; t < end; ++t) {
      if (Begins(state, start + t)) block.Begin(state, start + t, nullptr);
      block.Step(state, start + t, F32Row(qkv_, t), F32Row(o_, t));
    }
  }

  // `count` tokens after the first `done`, whole blocks, from a state without pending tokens.
  void Blocks(const H3Slots& slots, const SequencePart& part, Captures captures, int64_t done,
              int64_t count) {
    const GroupState<Stored> state = slots.Group<Stored>(part.slot, group_);
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      const Stored* ring = state.rings + c * layout_.ring_values();
      UnrollRing(layout_, ring, (part.start + done) % layout_.taps,
                 buffers_.history + c * buffers_.history_floats);
    }
    const auto capture = [&] {
      if (captures.empty() || captures.front().tokens != done) return;
      StoreState(state.modes, part.start + done, slots.Group<Stored>(captures.front().to, group_));
      captures = captures.subspan(1);
    };
    capture();
    for (const int64_t end = done + count; done < end;) {
      const Stretch next = NextStretch(part.start, done, end, captures);
      Segment(done, next, state.modes);
      done += next.tokens;
      capture();
    }
    StoreState(state.modes, part.start + done, state);
  }

  // What comes after `done` tokens of `end`: a stretch ends where the state is copied.
  static Stretch NextStretch(int64_t start, int64_t done, int64_t end, Captures captures) {
    const int64_t left = (captures.empty() ? end : captures.front().tokens) - done;
    if (start == 0 && done == 0 && end >= kTransformTokens) {
      return {kTransformTokens, Method::kTransform};
    }
    return {std::min(left, kScanTokens), Method::kScan};
  }

  // The state after all tokens before `position`, with these modes.
  void StoreState(const Stored* modes, int64_t position, const GroupState<Stored>& to) const {
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      Stored* ring = to.rings + c * layout_.ring_values();
      const float* end =
          buffers_.history + c * buffers_.history_floats + layout_.padded_taps() * kTileChannels;
      for (int64_t ago = 1; ago <= layout_.taps; ++ago) {
        CopyValues(end - ago * kTileChannels, kTileChannels,
                   ring + (position - ago + layout_.taps) % layout_.taps * kTileChannels);
      }
    }
    if (modes != to.modes) {
      std::copy_n(modes, layout_.row_blocks * layout_.modes_values(), to.modes);
    }
    *to.place = {.base = static_cast<int32_t>(position), .has_ahead = 0};
  }

  TileRows Columns(int64_t which, int64_t token) const {
    return {F32Row(qkv_, token) + which * layout_.d_model + layout_.FirstChannel(group_),
            qkv_.stride};
  }

  void Segment(int64_t token, const Stretch& stretch, Stored* modes) {
    const int64_t tokens = stretch.tokens;
    ShiftSsm(token, tokens);
    if (layout_.OneChannelPerLane(group_)) {
      MultiplyRows({buffers_.ks, kTileChannels}, Columns(2, token), tokens, buffers_.u,
                   kTileChannels);
      DiagonalSsm(0, stretch, modes);
      MultiplyRows({buffers_.y, kTileChannels}, Columns(0, token), tokens,
                   F32Row(o_, token) + layout_.FirstChannel(group_), o_.stride);
      return;
    }
    LoadPanel(layout_, group_, Columns(0, token), tokens, buffers_.q);
    LoadPanel(layout_, group_, Columns(2, token), tokens, buffers_.v);
    std::fill_n(buffers_.o, layout_.channel_blocks * tokens * kTileChannels, 0.0f);
    for (int64_t r = 0; r < layout_.row_blocks; ++r) {
      ExpandRows(layout_, group_, r, buffers_.ks, buffers_.v, tokens, buffers_.u);
      DiagonalSsm(r, stretch, modes + r * layout_.modes_values());
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
      RoundTo<Stored>(tokens, history + taps * kTileChannels);
      Fir(constants_.Taps(group_, c), taps, history + taps * kTileChannels, tokens,
          buffers_.ks + c * tokens * kTileChannels);
      std::copy_n(history + tokens * kTileChannels, taps * kTileChannels, history);
    }
  }

  // y of one row block from u, and its state.
  void DiagonalSsm(int64_t row_block, const Stretch& stretch, Stored* state) {
    const RowConstants rows = constants_.Rows(group_, row_block);
    const int64_t blocks = stretch.tokens / kScanSteps;
    switch (stretch.method) {
      case Method::kTransform:
        Convolve(row_block);
        return Absorb(rows, buffers_.u, blocks, state);
      case Method::kScan:
        return Scan(rows, buffers_.u, buffers_.y, blocks, state);
    }
  }

  void Convolve(int64_t row_block) {
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

// All parts in one group: its constants stay in the cache from one to the next.
template <typename Stored>
void RunGroup(const H3PrefillWeights& constants, int64_t group, Tensor qkv, const H3Slots& state,
              const SequenceParts& parts, Tensor o) {
  Captures captures = parts.captures;
  for (size_t i = 0; i < parts.parts.size(); ++i) {
    const SequencePart& part = parts.parts[i];
    const auto own =
        std::find_if(captures.begin(), captures.end(),
                     [&](const StateCapture& c) { return c.part != static_cast<int32_t>(i); }) -
        captures.begin();
    if (part.slot >= 0) {
      GroupSequence<Stored>(constants, group, qkv.Rows(part.first_row, part.tokens),
                            o.Rows(part.first_row, part.tokens))
          .Run(state, part, captures.first(static_cast<size_t>(own)));
    }
    captures = captures.subspan(static_cast<size_t>(own));
  }
}

}  // namespace

void H3Sequence(ThreadPool& pool, const H3PrefillWeights& constants, Tensor qkv, H3Slots& state,
                const SequenceParts& parts, Tensor o) {
  const H3Layout& layout = constants.layout();
  assert(qkv.cols == 3 * layout.d_model && o.cols == layout.d_model && o.rows == qkv.rows);
  assert(parts.rows() == qkv.rows);
  const auto run = state.type() == DType::kF32 ? RunGroup<float> : RunGroup<BF16>;
  // Two neighbouring groups of 16 channels share what a processor fetches of a row.
  pool.RunNeighbours(layout.groups,
                     [&](int64_t group) { run(constants, group, qkv, state, parts, o); });
}

}  // namespace hippodrome::cpu
