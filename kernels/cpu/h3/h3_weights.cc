#include "kernels/cpu/h3/h3_weights.h"

#include <span>

#include "kernels/cpu/base/memory.h"
#include "kernels/ssm/h3_ssm.h"

namespace hippodrome::cpu {
namespace {

std::shared_ptr<void> AllocateFloats(int64_t count) {
  return AllocateZeroed(static_cast<size_t>(count) * sizeof(float));
}

// Sets one lane of a mode [re | im, lanes].
void SetComplex(std::complex<double> value, float* lane) {
  lane[0] = static_cast<float>(value.real());
  lane[kTileChannels] = static_cast<float>(value.imag());
}

constexpr int64_t kModeConstantFloats = sizeof(ModeConstants) / sizeof(float);

// One lane of a mode's constants.
void SetMode(std::complex<double> a, std::complex<double> w, int64_t lane, ModeConstants& mode) {
  static_assert(kScanSteps == 8);
  const std::complex<double> square = a * a;
  const std::complex<double> fourth = square * square;
  SetComplex(a, mode.a[0] + lane);
  SetComplex(square, mode.a[1] + lane);
  SetComplex(square * a, mode.a[2] + lane);
  SetComplex(fourth, mode.a[3] + lane);
  SetComplex(fourth * fourth, mode.a_scan + lane);
  SetComplex(w * a, mode.wa + lane);
}

}  // namespace

H3PrefillWeights::H3PrefillWeights(ThreadPool& pool, const H3Parameters& p)
    : layout_(p),
      plan_(kKernelPoints),
      taps_(AllocateFloats(layout_.groups * layout_.channel_blocks * layout_.padded_taps() *
                           kTileChannels)),
      rows_(AllocateFloats(layout_.groups * layout_.row_blocks * RowBlockFloats())) {
  PackTaps(p);
  const H3Modes modes = DiscretizeH3(p);
  pool.Run(layout_.groups, [&](int64_t group, int) { PackRows(p, modes, group); });
}

int64_t H3PrefillWeights::bytes() const {
  const int64_t floats =
      layout_.groups * (layout_.channel_blocks * layout_.padded_taps() * kTileChannels +
                        layout_.row_blocks * RowBlockFloats());
  return floats * static_cast<int64_t>(sizeof(float));
}

int64_t H3PrefillWeights::RowBlockFloats() const {
  return layout_.modes * kModeConstantFloats + (kScanSteps + kKernelPoints) * kTileChannels;
}

float* H3PrefillWeights::RowBlock(int64_t group, int64_t row_block) const {
  return static_cast<float*>(rows_.get()) +
         (group * layout_.row_blocks + row_block) * RowBlockFloats();
}

const float* H3PrefillWeights::Taps(int64_t group, int64_t channel_block) const {
  return static_cast<const float*>(taps_.get()) +
         (group * layout_.channel_blocks + channel_block) * layout_.padded_taps() * kTileChannels;
}

RowConstants H3PrefillWeights::Rows(int64_t group, int64_t row_block) const {
  const float* block = RowBlock(group, row_block);
  RowConstants rows;
  rows.modes = reinterpret_cast<const ModeConstants*>(block);
  rows.count = layout_.modes;
  rows.kernel = block + layout_.modes * kModeConstantFloats;
  return rows;
}

const float* H3PrefillWeights::Kernel(int64_t group, int64_t row_block) const {
  return Rows(group, row_block).kernel + kScanSteps * kTileChannels;
}

void H3PrefillWeights::PackTaps(const H3Parameters& p) {
  const std::vector<float> taps = H3TapsWithSkips(p);
  for (int64_t group = 0; group < layout_.groups; ++group) {
    for (int64_t c = 0; c < layout_.Channels(group); ++c) {
      const int64_t channel = layout_.FirstChannel(group) + c;
      float* block = const_cast<float*>(Taps(group, c / kTileChannels));
      for (int64_t j = 0; j < layout_.taps; ++j) {
        block[j * kTileChannels + c % kTileChannels] =
            taps[static_cast<size_t>(channel * layout_.taps + j)];
      }
    }
  }
}

void H3PrefillWeights::PackRows(const H3Parameters& p, const H3Modes& modes, int64_t group) {
  std::vector<double> kernel(kKernelPoints);
  int64_t packed_head = -1;
  for (int64_t row = 0; row < layout_.Rows(group); ++row) {
    const int64_t head = group * layout_.group_heads + layout_.Head(row);
    if (head != packed_head) HeadKernel(modes, head, kernel);
    packed_head = head;
    const auto first = modes.da.begin() + head * layout_.modes;
    const auto weights = modes.weights.begin() + head * layout_.modes;
    float* const block = RowBlock(group, row / kTileChannels);
    const int64_t lane = row % kTileChannels;
    for (int64_t n = 0; n < layout_.modes; ++n) {
      SetMode(first[n], weights[n], lane, reinterpret_cast<ModeConstants*>(block)[n]);
    }
    const double skip = p.d[static_cast<size_t>(head)];
    float* at = block + layout_.modes * kModeConstantFloats + lane;
    for (size_t l = 0; l < kScanSteps; ++l, at += kTileChannels) {
      *at = static_cast<float>(kernel[l] + (l == 0 ? skip : 0.0));
    }
    for (size_t l = 0; l < kKernelPoints; ++l, at += kTileChannels) {
      *at = static_cast<float>((kernel[l] + (l == 0 ? skip : 0.0)) / kKernelPoints);
    }
  }
}

}  // namespace hippodrome::cpu
