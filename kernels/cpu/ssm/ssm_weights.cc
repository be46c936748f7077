#include "kernels/cpu/ssm/ssm_weights.h"

#include <complex>

#include "kernels/cpu/base/memory.h"
#include "kernels/ssm/diagonal_ssm.h"
#include "kernels/ssm/nplr_modes.h"

namespace hippodrome::cpu {
namespace {

template <typename Mode>
constexpr int64_t kFloats = sizeof(Mode) / sizeof(float);

SsmLayout LayoutOf(const DiagonalSsmParameters& p) {
  return {.channels = p.channels,
          .modes = p.modes,
          .kept_modes = (p.modes + kModesTogether - 1) / kModesTogether * kModesTogether};
}

SsmLayout LayoutOf(const NplrParameters& p) {
  return {.channels = p.channels, .modes = p.modes, .kept_modes = p.modes};
}

void SetLane(std::complex<double> value, int64_t lane, LaneComplex& to) {
  to.re[lane] = static_cast<float>(value.real());
  to.im[lane] = static_cast<float>(value.imag());
}

}  // namespace

SsmConstants::SsmConstants(const LongConvParameters& parameters, const HeadLoop& loop)
    : layout_(std::visit([](const auto& p) { return LayoutOf(p); }, parameters)),
      low_rank_(std::holds_alternative<NplrParameters>(parameters)),
      values_(AllocateZeroed(static_cast<size_t>(bytes()))) {
  std::visit([&](const auto& p) { Pack(p, loop); }, parameters);
}

int64_t SsmConstants::TileFloats() const {
  return layout_.kept_modes *
         (low_rank_ ? kFloats<LowRankMode> : kFloats<DiagonalMode>)+kTileChannels;
}

int64_t SsmConstants::bytes() const {
  return layout_.tiles() * TileFloats() * static_cast<int64_t>(sizeof(float));
}

float* SsmConstants::Tile(int64_t tile) const {
  return static_cast<float*>(values_.get()) + tile * TileFloats();
}

float* SsmConstants::Skips(int64_t tile) const { return Tile(tile + 1) - kTileChannels; }

template <typename Mode>
ScanConstants<Mode> SsmConstants::Constants(int64_t tile) const {
  return {reinterpret_cast<const Mode*>(Tile(tile)), layout_.kept_modes, Skips(tile)};
}

void SsmConstants::Pack(const DiagonalSsmParameters& p, const HeadLoop& loop) {
  loop(p.heads, [&](int64_t head) {
    const DiagonalRecurrence recurrence = RecurrenceOfHead(p, head);
    const int64_t of_head = p.channels / p.heads;
    for (int64_t c = head * of_head; c < (head + 1) * of_head; ++c) {
      auto* modes = reinterpret_cast<DiagonalMode*>(Tile(c / kTileChannels));
      const int64_t lane = c % kTileChannels;
      for (size_t n = 0; n < recurrence.a.size(); ++n) {
        SetLane(recurrence.a[n], lane, modes[n].a);
        SetLane(recurrence.w[n], lane, modes[n].w);
      }
      Skips(c / kTileChannels)[lane] = p.d[static_cast<size_t>(head)];
    }
  });
}

void SsmConstants::Pack(const NplrParameters& p, const HeadLoop& loop) {
  loop(p.channels, [&](int64_t c) {
    NplrNumbers numbers = NumbersOfChannel(p, c);
    if (p.c_length > 0) UnfoldOutput(p.c_length, numbers);
    NplrGroup group(static_cast<size_t>(p.modes));
    DiscretizeNplr(numbers, 0, group);
    auto* modes = reinterpret_cast<LowRankMode*>(Tile(c / kTileChannels));
    const int64_t lane = c % kTileChannels;
    for (size_t n = 0; n < group.size(); ++n) {
      SetLane(group[n].d.Get(0), lane, modes[n].d);
      SetLane(group[n].u.Get(0), lane, modes[n].p);
      SetLane(2.0 * group[n].v.Get(0), lane, modes[n].v);
      SetLane(group[n].b.Get(0), lane, modes[n].b);
      SetLane(2.0 * group[n].c.Get(0), lane, modes[n].c);
    }
    Skips(c / kTileChannels)[lane] = p.d[static_cast<size_t>(c)];
  });
}

void SsmConstants::Scan(int64_t tile, const float* u, float* y, int64_t tokens,
                        LaneComplex* state) const {
  if (low_rank_) {
    ScanSsm(Constants<LowRankMode>(tile), u, y, tokens, state);
  } else {
    ScanSsm(Constants<DiagonalMode>(tile), u, y, tokens, state);
  }
}

}  // namespace hippodrome::cpu
