#include "kernels/cpu/conv/direct_conv.h"

#include <algorithm>

#include "kernels/cpu/conv/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/direct_conv.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

static_assert(kTileChannels % kLanes == 0);
constexpr int kOutputs = 8;
constexpr int kTaps = 4;

// The microkernel: sum[i] = sum_m taps[m] in[i - m], m in [begin, end), a multiple of kTaps of
// them. Rows of `in` are `step` floats apart. Eight outputs share the loads of four taps.
HWY_INLINE void FirSums(const float* taps, int64_t begin, int64_t end, const float* in,
                        int64_t step, V (&sum)[kOutputs]) {
  HWY_UNROLL(8)
  for (int i = 0; i < kOutputs; ++i) sum[i] = hn::Zero(D());
  for (int64_t m = begin; m < end; m += kTaps) {
    V tap[kTaps];
    HWY_UNROLL(4)
    for (int k = 0; k < kTaps; ++k) tap[k] = hn::Load(D(), taps + (m + k) * kTileChannels);
    const float* from = in - (m + kTaps - 1) * step;
    HWY_UNROLL(11)
    for (int s = 0; s < kOutputs + kTaps - 1; ++s) {
      const V value = hn::Load(D(), from + s * step);
      HWY_UNROLL(4)
      for (int k = 0; k < kTaps; ++k) {
        const int i = s - (kTaps - 1) + k;  // output of tap m + k at this input
        if (i >= 0 && i < kOutputs) sum[i] = hn::MulAdd(tap[k], value, sum[i]);
      }
    }
  }
}

int64_t WholeTaps(int64_t count) { return (count + kTaps - 1) / kTaps * kTaps; }

// Of series whose rows are `step` floats apart, which is negative in reversed time.
void Convolve(const float* kernel, int64_t count, const float* x, int64_t step, int64_t tokens,
              float* y) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    for (int64_t t = 0; t < tokens; t += kOutputs) {
      V sum[kOutputs];
      FirSums(kernel + lane, 0, std::min(WholeTaps(count), t + kOutputs), x + t * step + lane, step,
              sum);
      const int64_t outputs = std::min<int64_t>(kOutputs, tokens - t);
      for (int64_t i = 0; i < outputs; ++i) hn::Store(sum[i], D(), y + (t + i) * step + lane);
    }
  }
}

void ConvolveDirect(const float* kernel, int64_t count, const float* x, int64_t tokens, float* y) {
  Convolve(kernel, count, x, kTileChannels, tokens, y);
}

void CorrelateDirect(const float* kernel, int64_t count, const float* dy, int64_t tokens,
                     float* dx) {
  const int64_t last = (tokens - 1) * kTileChannels;
  Convolve(kernel, count, dy + last, -kTileChannels, tokens, dx + last);
}

// The convolution of dy with x in reversed time.
void AddCorrelation(const float* x, const float* dy, int64_t tokens, int64_t count, float* sums) {
  count = std::min(count, tokens);
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    for (int64_t j = 0; j < count; j += kOutputs) {
      V sum[kOutputs];
      FirSums(dy + lane, j, WholeTaps(tokens), x - j * kTileChannels + lane, -kTileChannels, sum);
      const int64_t outputs = std::min<int64_t>(kOutputs, count - j);
      for (int64_t i = 0; i < outputs; ++i) {
        float* at = sums + (j + i) * kTileChannels + lane;
        hn::Store(hn::Add(hn::Load(D(), at), sum[i]), D(), at);
      }
    }
  }
}

void Fir(const float* kernel, int64_t count, const float* x, int64_t tokens, float* y) {
  for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
    for (int64_t t = 0; t < tokens; t += kOutputs) {
      V sum[kOutputs];
      FirSums(kernel + lane, 0, count, x + t * kTileChannels + lane, kTileChannels, sum);
      HWY_UNROLL(8)
      for (int i = 0; i < kOutputs; ++i) hn::Store(sum[i], D(), y + (t + i) * kTileChannels + lane);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ConvolveDirect);
HWY_EXPORT(CorrelateDirect);
HWY_EXPORT(AddCorrelation);
HWY_EXPORT(Fir);

void ConvolveDirect(const float* kernel, int64_t count, const float* x, int64_t tokens, float* y) {
  HWY_DYNAMIC_DISPATCH(ConvolveDirect)(kernel, count, x, tokens, y);
}

void CorrelateDirect(const float* kernel, int64_t count, const float* dy, int64_t tokens,
                     float* dx) {
  HWY_DYNAMIC_DISPATCH(CorrelateDirect)(kernel, count, dy, tokens, dx);
}

void AddCorrelation(const float* x, const float* dy, int64_t tokens, int64_t count, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddCorrelation)(x, dy, tokens, count, sums);
}

void Fir(const float* kernel, int64_t count, const float* x, int64_t tokens, float* y) {
  HWY_DYNAMIC_DISPATCH(Fir)(kernel, count, x, tokens, y);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
