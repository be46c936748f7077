#include "kernels/cuda/ssm/ssm_weights.h"

#include <cassert>
#include <complex>

#include "kernels/ssm/diagonal_ssm.h"
#include "kernels/ssm/nplr_modes.h"

namespace hippodrome::cuda {
namespace {

float2 Rounded(std::complex<double> value) {
  return make_float2(static_cast<float>(value.real()), static_cast<float>(value.imag()));
}

std::vector<DiagonalMode> ModesOf(const DiagonalSsmParameters& p) {
  std::vector<DiagonalMode> modes;
  for (int64_t head = 0; head < p.heads; ++head) {
    const DiagonalRecurrence recurrence = RecurrenceOfHead(p, head);
    for (int64_t c = 0; c < p.channels / p.heads; ++c) {
      for (size_t n = 0; n < recurrence.a.size(); ++n) {
        modes.push_back({Rounded(recurrence.a[n]), Rounded(recurrence.w[n])});
      }
    }
  }
  return modes;
}

std::vector<LowRankMode> ModesOf(const NplrParameters& p) {
  std::vector<LowRankMode> modes;
  for (int64_t c = 0; c < p.channels; ++c) {
    NplrNumbers numbers = NumbersOfChannel(p, c);
    if (p.c_length > 0) UnfoldOutput(p.c_length, numbers);
    NplrGroup group(static_cast<size_t>(p.modes));
    DiscretizeNplr(numbers, 0, group);
    for (const NplrMode& mode : group) {
      modes.push_back({Rounded(mode.d.Get(0)), Rounded(mode.u.Get(0)), Rounded(2.0 * mode.v.Get(0)),
                       Rounded(mode.b.Get(0)), Rounded(2.0 * mode.c.Get(0))});
    }
  }
  return modes;
}

// The skip of each channel.
std::vector<float> SkipsOf(std::span<const float> d, int64_t channels) {
  const auto heads = static_cast<int64_t>(d.size());
  std::vector<float> skips;
  for (int64_t c = 0; c < channels; ++c) {
    skips.push_back(d[static_cast<size_t>(c / (channels / heads))]);
  }
  return skips;
}

template <typename Value>
std::shared_ptr<void> Uploaded(Device& device, const std::vector<Value>& values) {
  const size_t bytes = values.size() * sizeof(Value);
  std::shared_ptr<void> memory = AllocateZeroed(device, bytes);
  CopyToDevice(device, values.data(), memory.get(), bytes);
  return memory;
}

}  // namespace

SsmConstants::SsmConstants(Device& device, const LongConvParameters& parameters, DType activations)
    : activations_(activations) {
  std::visit(
      [&](const auto& p) {
        const auto modes = ModesOf(p);
        const std::vector<float> skips = SkipsOf(p.d, p.channels);
        modes_ = Uploaded(device, modes);
        skip_ = Uploaded(device, skips);
        bytes_ =
            static_cast<int64_t>(modes.size() * sizeof(modes[0]) + skips.size() * sizeof(skips[0]));
        view_ = {.channels = static_cast<int32_t>(p.channels),
                 .modes = static_cast<int32_t>(p.modes),
                 .low_rank = std::holds_alternative<NplrParameters>(parameters) ? 1 : 0,
                 .modes_of_channels = modes_.get(),
                 .skip = static_cast<const float*>(skip_.get())};
      },
      parameters);
}

}  // namespace hippodrome::cuda
