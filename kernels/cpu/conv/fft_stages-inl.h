// The stages of a transform of tiles: first and last between rows and tiles, the others in place. A
// point of a tile is [re of 16 channels | im of 16 channels]. Included once per target.
#if defined(HIPPODROME_KERNELS_CPU_CONV_FFT_STAGES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HIPPODROME_KERNELS_CPU_CONV_FFT_STAGES_INL_H_
#undef HIPPODROME_KERNELS_CPU_CONV_FFT_STAGES_INL_H_
#else
#define HIPPODROME_KERNELS_CPU_CONV_FFT_STAGES_INL_H_
#endif

#include "kernels/cpu/base/lanes-inl.h"
#include "kernels/cpu/conv/fft.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

static_assert(kTileChannels % kLanes == 0);
constexpr int64_t kPoint = 2 * kTileChannels;

struct Complex {
  V re, im;
};

HWY_INLINE Complex Load(const float* point) {
  return {hn::Load(D(), point), hn::Load(D(), point + kTileChannels)};
}

HWY_INLINE void Store(Complex z, float* point) {
  hn::Store(z.re, D(), point);
  hn::Store(z.im, D(), point + kTileChannels);
}

HWY_INLINE Complex Add(Complex a, Complex b) { return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)}; }
HWY_INLINE Complex Sub(Complex a, Complex b) { return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)}; }

HWY_INLINE Complex Multiply(Complex a, Complex b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::MulAdd(a.re, b.im, hn::Mul(a.im, b.re))};
}

// a conj(b)
HWY_INLINE Complex MultiplyConjugate(Complex a, Complex b) {
  return {hn::MulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::NegMulAdd(a.re, b.im, hn::Mul(a.im, b.re))};
}

// The same number in every lane: (re, im) at `pair`.
HWY_INLINE Complex Broadcast(const float* pair) {
  return {hn::Set(D(), pair[0]), hn::Set(D(), pair[1])};
}

// a + i b or a - i b.
HWY_INLINE Complex AddI(Complex a, Complex b) { return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)}; }
HWY_INLINE Complex SubI(Complex a, Complex b) { return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)}; }

template <bool kInverse>
HWY_INLINE Complex AddTurned(Complex a, Complex b) {  // a + b exp(-i pi / 2), or its inverse's
  return kInverse ? AddI(a, b) : SubI(a, b);
}

// z_k <- sum_j z_j exp(-2 pi i j k / 4), or +.
template <bool kInverse>
HWY_INLINE void Butterfly4(Complex& z0, Complex& z1, Complex& z2, Complex& z3) {
  const Complex a = Add(z0, z2);
  const Complex b = Sub(z0, z2);
  const Complex c = Add(z1, z3);
  const Complex d = Sub(z1, z3);
  z0 = Add(a, c);
  z2 = Sub(a, c);
  z1 = AddTurned<kInverse>(b, d);
  z3 = AddTurned<!kInverse>(b, d);
}

// z exp(-i pi / 4), or +; without the common factor sqrt(1/2) of both parts.
template <bool kInverse>
HWY_INLINE Complex EighthTurn(Complex z) {
  return AddTurned<kInverse>(z, z);
}

// z_k <- sum_j z_j exp(-2 pi i j k / 8), or +.
template <bool kInverse>
HWY_INLINE void Butterfly8(Complex (&z)[8]) {
  Complex e0 = Add(z[0], z[4]), o0 = Sub(z[0], z[4]);
  Complex e1 = Add(z[1], z[5]), o1 = Sub(z[1], z[5]);
  Complex e2 = Add(z[2], z[6]), o2 = Sub(z[2], z[6]);
  Complex e3 = Add(z[3], z[7]), o3 = Sub(z[3], z[7]);
  Butterfly4<kInverse>(e0, e1, e2, e3);
  // Odd outputs: the four-point transform of o_j exp(-2 pi i j / 8), the factors folded into it.
  const V root_half = hn::Set(D(), 0.707106781f);
  const Complex b = AddTurned<kInverse>(o0, o2);   // o0 + o2 W^2
  const Complex a = AddTurned<!kInverse>(o0, o2);  // o0 - o2 W^2
  const Complex t1 = EighthTurn<kInverse>(o1);
  const Complex t3 = EighthTurn<!kInverse>(o3);  // o3 W^3 = -o3 W^-1
  const Complex c = Sub(t1, t3);
  const Complex d = Add(t1, t3);
  z[0] = e0;
  z[2] = e1;
  z[4] = e2;
  z[6] = e3;
  z[1] = {hn::MulAdd(c.re, root_half, b.re), hn::MulAdd(c.im, root_half, b.im)};
  z[5] = {hn::NegMulAdd(c.re, root_half, b.re), hn::NegMulAdd(c.im, root_half, b.im)};
  const Complex minus = {hn::MulAdd(d.im, root_half, a.re), hn::NegMulAdd(d.re, root_half, a.im)};
  const Complex plus = {hn::NegMulAdd(d.im, root_half, a.re), hn::MulAdd(d.re, root_half, a.im)};
  z[3] = kInverse ? plus : minus;
  z[7] = kInverse ? minus : plus;
}

template <bool kInverse>
HWY_INLINE void Butterfly(Complex (&z)[4]) {
  Butterfly4<kInverse>(z[0], z[1], z[2], z[3]);
}
template <bool kInverse>
HWY_INLINE void Butterfly(Complex (&z)[8]) {
  Butterfly8<kInverse>(z);
}

// w^(j L / 8) = exp(i pi j / 16).
constexpr float kWeights[8][2] = {{1.0f, 0.0f},
                                  {0.980785280f, 0.195090322f},
                                  {0.923879533f, 0.382683432f},
                                  {0.831469612f, 0.555570233f},
                                  {0.707106781f, 0.707106781f},
                                  {0.555570233f, 0.831469612f},
                                  {0.382683432f, 0.923879533f},
                                  {0.195090322f, 0.980785280f}};

// The first stage, from real rows: weights x by w and scatters into eight blocks, for each tile of
// its width. Rows from x.tokens on count as zeros; kWhole: there are none.
template <bool kWhole>
HWY_INLINE void FirstStage(const FftPlan& plan, const TimeSeries& x, float* work) {
  const int64_t points = plan.length() / 8;
  const int64_t block = plan.block_stride();
  const float* twiddle = plan.stages().front().twiddles.data();
  for (int64_t p = 0; p < points; ++p, twiddle += 16) {
    for (int64_t c = 0; c < x.width; c += kLanes) {
      Complex z[8];
      HWY_UNROLL(8)
      for (int j = 0; j < 8; ++j) {
        const int64_t t = j * points + p;
        const V value = kWhole || t < x.tokens ? hn::LoadU(D(), x.Row(t) + c) : hn::Zero(D());
        z[j] = {hn::Mul(value, hn::Set(D(), kWeights[j][0])),
                hn::Mul(value, hn::Set(D(), kWeights[j][1]))};
      }
      Butterfly8<false>(z);
      float* to = work + c / kTileChannels * plan.work_floats() + p * kPoint + c % kTileChannels;
      HWY_UNROLL(8)
      for (int k = 0; k < 8; ++k) {
        Store(Multiply(z[k], Broadcast(twiddle + 2 * k)), to + k * block);
      }
    }
  }
}

// Undoes FirstStage: gathers the eight blocks, weights by conj(w) and keeps the real part.
template <bool kWhole>
HWY_INLINE void LastStage(const FftPlan& plan, const float* work, const TimeSeries& y) {
  const int64_t points = plan.length() / 8;
  const int64_t block = plan.block_stride();
  const float* twiddle = plan.stages().front().twiddles.data();
  for (int64_t p = 0; p < points; ++p, twiddle += 16) {
    for (int64_t c = 0; c < y.width; c += kLanes) {
      const float* from =
          work + c / kTileChannels * plan.work_floats() + p * kPoint + c % kTileChannels;
      Complex z[8];
      HWY_UNROLL(8)
      for (int k = 0; k < 8; ++k) {
        z[k] = MultiplyConjugate(Load(from + k * block), Broadcast(twiddle + 2 * k));
      }
      Butterfly8<true>(z);
      HWY_UNROLL(8)
      for (int j = 0; j < 8; ++j) {
        const int64_t t = j * points + p;
        if (!kWhole && t >= y.tokens) break;
        const V re = hn::Mul(z[j].re, hn::Set(D(), kWeights[j][0]));
        hn::StoreU(hn::MulAdd(z[j].im, hn::Set(D(), kWeights[j][1]), re), D(), y.Row(t) + c);
      }
    }
  }
}

template <int kRadix>
HWY_INLINE void ForwardStage(const FftStage& stage, float* data) {
  const int64_t points = stage.length / kRadix;
  const float* twiddle = stage.twiddles.data();
  for (int64_t p = 0; p < points; ++p, twiddle += 2 * (kRadix - 1)) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      float* at = data + p * kPoint + lane;
      Complex z[kRadix];
      HWY_UNROLL(8)
      for (int j = 0; j < kRadix; ++j) z[j] = Load(at + j * points * kPoint);
      Butterfly<false>(z);
      Store(z[0], at);
      HWY_UNROLL(8)
      for (int k = 1; k < kRadix; ++k) {
        Store(Multiply(z[k], Broadcast(twiddle + 2 * (k - 1))), at + k * points * kPoint);
      }
    }
  }
}

template <int kRadix>
HWY_INLINE void InverseStage(const FftStage& stage, float* data) {
  const int64_t points = stage.length / kRadix;
  const float* twiddle = stage.twiddles.data();
  for (int64_t p = 0; p < points; ++p, twiddle += 2 * (kRadix - 1)) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      float* at = data + p * kPoint + lane;
      Complex z[kRadix];
      z[0] = Load(at);
      HWY_UNROLL(8)
      for (int k = 1; k < kRadix; ++k) {
        z[k] = MultiplyConjugate(Load(at + k * points * kPoint), Broadcast(twiddle + 2 * (k - 1)));
      }
      Butterfly<true>(z);
      HWY_UNROLL(8)
      for (int j = 0; j < kRadix; ++j) Store(z[j], at + j * points * kPoint);
    }
  }
}

HWY_INLINE void Forward(const FftStage& stage, float* data) {
  stage.radix == 8 ? ForwardStage<8>(stage, data) : ForwardStage<4>(stage, data);
}

HWY_INLINE void Inverse(const FftStage& stage, float* data) {
  stage.radix == 8 ? InverseStage<8>(stage, data) : InverseStage<4>(stage, data);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
