#include "kernels/cpu/h3/h3_step.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/h3/h3_block.h"
#include "kernels/cpu/h3/h3_layout.h"

namespace hippodrome::cpu {
namespace {

// Neighbouring groups in one task, so that pending rows are read in long runs; enough tasks to even
// out.
constexpr int64_t kTasksPerThread = 2;

// The rows [begin, end) of a call, in which no sequence begins a block after a step of its own.
struct Rows {
  int64_t begin;
  int64_t end;
};

// The tokens of all rows in a range of groups. Stored: of the states, float or BF16.
template <typename Stored>
class GroupsStep {
 public:
  GroupsStep(const H3PrefillWeights& constants, Tensor qkv, const H3Slots& state, Tensor slots,
             Tensor positions, Tensor o)
      : constants_(constants),
        layout_(constants.layout()),
        qkv_(qkv),
        state_(state),
        slots_(I32Row(slots, 0)),
        positions_(I32Row(positions, 0)),
        o_(o) {}

  void Run(int64_t begin, int64_t end) const {
    // Only the last group may have fewer channels than lanes.
    const int64_t plain = layout_.OneChannelPerLane(end - 1) ? end
                          : layout_.OneChannelPerLane(begin) ? end - 1
                                                             : begin;
    for (Rows rows = {0, 0}; rows.end < qkv_.rows;) {
      rows = {rows.end, EndOfRun(rows.end)};
      BeginBlocks(rows, begin, end);
      if (begin < plain) StepPlain(rows, begin, plain);
      for (int64_t group = plain; group < end; ++group) StepGroup(rows, group);
    }
  }

 private:
  // A token of a call in a group.
  struct Place {
    int64_t group;
    int64_t row;
  };

  // The rows of a sequence follow one another.
  int64_t EndOfRun(int64_t begin) const {
    int64_t end = begin + 1;
    while (end < qkv_.rows && (slots_[end] != slots_[end - 1] || slots_[end] < 0 ||
                               positions_[end] % kScanSteps != 0)) {
      ++end;
    }
    return end;
  }

  // Group by group, so that a group's constants stay in the cache.
  void BeginBlocks(const Rows& rows, int64_t begin, int64_t end) const {
    const std::vector<int64_t> first_rows = FindBegins(rows, begin);
    for (int64_t group = begin; group < end; ++group) {
      for (size_t i = 0; i < first_rows.size(); ++i) {
        const bool last = i + 1 == first_rows.size();
        const GroupState<Stored> next =
            StateAt(last ? Place{std::min(group + 1, end - 1), first_rows.front()}
                         : Place{group, first_rows[i + 1]});
        H3Block<Stored>(constants_, group)
            .Begin(StateAt({group, first_rows[i]}), positions_[first_rows[i]], &next);
      }
    }
    if (!first_rows.empty()) FinishStreams();
  }

  // The first rows of sequences that begin a block: one group tells, for all of a slot are at the
  // same place.
  std::vector<int64_t> FindBegins(const Rows& rows, int64_t group) const {
    std::vector<int64_t> found;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int32_t slot = slots_[row];
      if (slot < 0 || (row > rows.begin && slot == slots_[row - 1])) continue;
      if (Begins(StateAt({group, row}), positions_[row])) found.push_back(row);
    }
    return found;
  }

  // Row by row, so that the pending rows of neighbouring groups are read as they lie.
  void StepPlain(const Rows& rows, int64_t begin, int64_t end) const {
    for (int64_t row = NextRow(rows, rows.begin); row < rows.end;) {
      const int64_t next = NextRow(rows, row + 1);
      const TokenStep step = TokenAt({begin, row});
      const TokenStep ahead = next < rows.end ? TokenAt({begin, next}) : step;
      StepChannels<Stored>(step, end - begin, next < rows.end ? &ahead : nullptr);
      row = next;
    }
  }

  void StepGroup(const Rows& rows, int64_t group) const {
    const H3Block<Stored> block(constants_, group);
    for (int64_t row = NextRow(rows, rows.begin); row < rows.end; row = NextRow(rows, row + 1)) {
      block.Step(StateAt({group, row}), positions_[row], F32Row(qkv_, row), F32Row(o_, row));
    }
  }

  // The first row from `row` on that has a token.
  int64_t NextRow(const Rows& rows, int64_t row) const {
    while (row < rows.end && slots_[row] < 0) ++row;
    return row;
  }

  GroupState<Stored> StateAt(const Place& place) const {
    return state_.Group<Stored>(slots_[place.row], place.group);
  }
  TokenStep TokenAt(const Place& place) const {
    return StepAt(constants_, place.group, StateAt(place), positions_[place.row],
                  F32Row(qkv_, place.row), F32Row(o_, place.row));
  }

  const H3PrefillWeights& constants_;
  const H3Layout& layout_;
  const Tensor qkv_;
  const H3Slots& state_;
  const int32_t* slots_;
  const int32_t* positions_;
  const Tensor o_;
};

// Line `block` of row `row` of each of the groups, which have `blocks` such lines side by side.
void AddTokenRow(const TokenRows& rows, int64_t row, int64_t blocks, LaterReads* reads) {
  const auto stride = blocks * static_cast<int64_t>(kTileChannels * sizeof(float));
  for (int64_t block = 0; block < blocks; ++block) {
    reads->rows.push_back({reinterpret_cast<const char*>(rows.At(row, block)), stride});
  }
}

void AddPending(const H3Layout& layout, const PendingRows& pending, const RecentRows& recent,
                LaterReads* reads) {
  for (int64_t row = recent.first_key; row <= recent.j; ++row) {
    AddTokenRow(pending.keys, row, layout.channel_blocks, reads);
  }
  for (int64_t row = recent.first_input; row <= recent.j; ++row) {
    AddTokenRow(pending.inputs, row, layout.row_blocks, reads);
  }
  AddTokenRow(pending.key_sums, recent.j, layout.channel_blocks, reads);
  AddTokenRow(pending.sums, recent.j, layout.row_blocks, reads);
}

// Of group 0.
GroupBlock FirstBlock(const H3Slots& state, int64_t slot) {
  if (state.type() == DType::kF32) return state.Group<float>(slot, 0);
  return state.Group<BF16>(slot, 0);
}

template <typename Stored>
void RunGroups(ThreadPool& pool, const H3PrefillWeights& constants, Tensor qkv,
               const H3Slots& state, Tensor slots, Tensor positions, Tensor o) {
  const int64_t groups = constants.layout().groups;
  const GroupsStep<Stored> step(constants, qkv, state, slots, positions, o);
  const int64_t tasks = std::min(groups, kTasksPerThread * pool.threads());
  pool.RunNeighbours(
      tasks, [&](int64_t task) { step.Run(task * groups / tasks, (task + 1) * groups / tasks); });
}

}  // namespace

void H3Step(ThreadPool& pool, const H3PrefillWeights& constants, Tensor qkv, H3Slots& state,
            Tensor slots, Tensor positions, Tensor o) {
  const H3Layout& layout = constants.layout();
  assert(qkv.cols == 3 * layout.d_model && o.cols == layout.d_model);
  assert(slots.cols == qkv.rows && positions.cols == qkv.rows && o.rows == qkv.rows);
  const auto run = state.type() == DType::kF32 ? RunGroups<float> : RunGroups<BF16>;
  run(pool, constants, qkv, state, slots, positions, o);
  const int32_t* slot = I32Row(slots, 0);
  for (int64_t b = 0; b < qkv.rows; ++b) {
    if (slot[b] < 0) std::fill_n(F32Row(o, b), layout.d_model, 0.0f);
  }
}

LaterReads ReadsOfH3Step(const H3PrefillWeights& constants, const H3Slots& state, Tensor slots,
                         Tensor positions) {
  const H3Layout& layout = constants.layout();
  LaterReads reads{.columns = layout.groups};
  const int32_t* slot = I32Row(slots, 0);
  const int32_t* position = I32Row(positions, 0);
  for (int64_t row = 0; row < slots.cols; ++row) {
    // The last of a sequence's rows reads what the others do.
    if (slot[row] < 0 || (row + 1 < slots.cols && slot[row + 1] == slot[row])) continue;
    const GroupBlock block = FirstBlock(state, slot[row]);
    if (Begins(block, position[row])) continue;
    AddPending(layout, block.pending, RecentAt(layout, block, position[row]), &reads);
  }
  return reads;
}

}  // namespace hippodrome::cpu
