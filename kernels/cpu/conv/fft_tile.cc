// The work of fft.h on tiles, for every vector width.
#include "kernels/cpu/conv/fft.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/fft_tile.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// ---- Stages ------------------------------------------------------------------------------------

// The stages of a transform of tiles: first and last between rows and tiles, the others in place. A
// point of a tile is [re of 16 channels | im of 16 channels].

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

// ---- Transforms --------------------------------------------------------------------------------

// What is done with the spectrum z of eight neighbours, lanes [lane, lane + kLanes), between the
// last forward stage and the first inverse one. Pointers are to the first of the neighbours.

// z k. A point of the kernel's spectrum has kFloats floats: each channel has its own, or all share
// one.
constexpr int64_t kOwn = kPoint;
constexpr int64_t kShared = 2;
template <int64_t kFloats>
struct Product {
  const float* kernel;

  Product At(int64_t point) const { return {kernel + point * kFloats}; }
  HWY_INLINE void operator()(Complex (&z)[8], int64_t lane) const {
    HWY_UNROLL(8)
    for (int k = 0; k < 8; ++k) {
      if constexpr (kFloats == kShared) {
        z[k] = Multiply(z[k], Broadcast(kernel + k * kFloats));
      } else {
        z[k] = Multiply(z[k], Load(kernel + lane + k * kFloats));
      }
    }
  }
};

// The same, and z itself in `kept`.
struct KeptProduct {
  const float* kernel;
  float* kept;

  KeptProduct At(int64_t point) const { return {kernel + point * kPoint, kept + point * kPoint}; }
  HWY_INLINE void operator()(Complex (&z)[8], int64_t lane) const {
    HWY_UNROLL(8)
    for (int k = 0; k < 8; ++k) {
      Store(z[k], kept + lane + k * kPoint);
      z[k] = Multiply(z[k], Load(kernel + lane + k * kPoint));
    }
  }
};

// z conj(k), and sums += z conj(kept).
struct Correlation {
  const float* kernel;
  const float* kept;
  float* sums;

  Correlation At(int64_t point) const {
    return {kernel + point * kPoint, kept + point * kPoint, sums + point * kPoint};
  }
  HWY_INLINE void operator()(Complex (&z)[8], int64_t lane) const {
    HWY_UNROLL(8)
    for (int k = 0; k < 8; ++k) {
      const int64_t at = lane + k * kPoint;
      Store(Add(Load(sums + at), MultiplyConjugate(z[k], Load(kept + at))), sums + at);
      z[k] = MultiplyConjugate(z[k], Load(kernel + at));
    }
  }
};

HWY_INLINE void LoadPoints(const float* from, Complex (&z)[8]) {
  HWY_UNROLL(8)
  for (int j = 0; j < 8; ++j) z[j] = Load(from + j * kPoint);
}

HWY_INLINE void StorePoints(const Complex (&z)[8], float* to) {
  HWY_UNROLL(8)
  for (int j = 0; j < 8; ++j) Store(z[j], to + j * kPoint);
}

// Stages `stage` and below of one block, forward, the work on the spectrum, and back. Depth first,
// so that small blocks stay in the nearest cache.
template <typename Work>
void WorkOnBlock(const FftStage* stage, float* data, Work spectrum) {
  if (stage->length == 8) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      Complex z[8];
      LoadPoints(data + lane, z);
      Butterfly8<false>(z);
      spectrum(z, lane);
      Butterfly8<true>(z);
      StorePoints(z, data + lane);
    }
    return;
  }
  Forward(*stage, data);
  const int64_t points = stage->length / stage->radix;
  for (int64_t at = 0; at < stage->length; at += points) {
    WorkOnBlock(stage + 1, data + at * kPoint, spectrum.At(at));
  }
  Inverse(*stage, data);
}

template <bool kWhole, typename Work>
HWY_INLINE void WorkOnTiles(const FftPlan& plan, const TimeSeries& x, const TimeSeries& y,
                            Work spectrum, float* work) {
  FirstStage<kWhole>(plan, x, work);
  const int64_t points = plan.length() / 8;
  const int64_t blocks = x.width / kTileChannels * 8;
  for (int64_t k = 0; k < blocks; ++k) {
    WorkOnBlock(&plan.stages()[1], work + k * plan.block_stride(), spectrum.At(k % 8 * points));
  }
  LastStage<kWhole>(plan, work, y);
}

// y = what `spectrum` makes of x.
template <typename Work>
HWY_INLINE void WorkOnSeries(const FftPlan& plan, const TimeSeries& x, const TimeSeries& y,
                             Work spectrum, float* work) {
  x.tokens == plan.length() ? WorkOnTiles<true>(plan, x, y, spectrum, work)
                            : WorkOnTiles<false>(plan, x, y, spectrum, work);
}

void ConvolveTile(const FftPlan& plan, const float* k, const TimeSeries& x, const TimeSeries& y,
                  float* kept, float* work) {
  kept == nullptr ? WorkOnSeries(plan, x, y, Product<kOwn>{k}, work)
                  : WorkOnSeries(plan, x, y, KeptProduct{k, kept}, work);
}

void ConvolveTiles(const FftPlan& plan, const float* k, const TimeSeries& x, const TimeSeries& y,
                   float* work) {
  WorkOnSeries(plan, x, y, Product<kShared>{k}, work);
}

void CorrelateTile(const FftPlan& plan, const float* k, const float* x, const TimeSeries& dy,
                   const TimeSeries& dx, float* sums, float* work) {
  WorkOnSeries(plan, dy, dx, Correlation{k, x, sums}, work);
}

// Stages `stage` and below of one block, forward.
void TransformBlock(const FftStage* stage, float* data, float* spectrum) {
  if (stage->length == 8) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      Complex z[8];
      LoadPoints(data + lane, z);
      Butterfly8<false>(z);
      StorePoints(z, spectrum + lane);
    }
    return;
  }
  Forward(*stage, data);
  const int64_t points = stage->length / stage->radix;
  for (int64_t at = 0; at < stage->length; at += points) {
    TransformBlock(stage + 1, data + at * kPoint, spectrum + at * kPoint);
  }
}

void TransformTile(const FftPlan& plan, const TimeSeries& x, float* spectrum, float* work) {
  x.tokens == plan.length() ? FirstStage<true>(plan, x, work) : FirstStage<false>(plan, x, work);
  const int64_t points = plan.length() / 8;
  for (int64_t k = 0; k < 8; ++k) {
    TransformBlock(&plan.stages()[1], work + k * plan.block_stride(),
                   spectrum + k * points * kPoint);
  }
}

// The inverse of stages `stage` and below.
void InverseBlock(const FftStage* stage, const float* spectrum, float* data) {
  if (stage->length == 8) {
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      Complex z[8];
      LoadPoints(spectrum + lane, z);
      Butterfly8<true>(z);
      StorePoints(z, data + lane);
    }
    return;
  }
  const int64_t points = stage->length / stage->radix;
  for (int64_t at = 0; at < stage->length; at += points) {
    InverseBlock(stage + 1, spectrum + at * kPoint, data + at * kPoint);
  }
  Inverse(*stage, data);
}

void InverseTile(const FftPlan& plan, const float* spectrum, const TimeSeries& y, float* work) {
  const int64_t points = plan.length() / 8;
  for (int64_t k = 0; k < 8; ++k) {
    InverseBlock(&plan.stages()[1], spectrum + k * points * kPoint, work + k * plan.block_stride());
  }
  LastStage<false>(plan, work, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(TransformTile);
HWY_EXPORT(InverseTile);
HWY_EXPORT(ConvolveTile);
HWY_EXPORT(ConvolveTiles);
HWY_EXPORT(CorrelateTile);

void TransformTile(const FftPlan& plan, const TimeSeries& x, float* spectrum, float* work) {
  HWY_DYNAMIC_DISPATCH(TransformTile)(plan, x, spectrum, work);
}

void InverseTile(const FftPlan& plan, const float* spectrum, const TimeSeries& y, float* work) {
  HWY_DYNAMIC_DISPATCH(InverseTile)(plan, spectrum, y, work);
}

void ConvolveTile(const FftPlan& plan, const float* k, const TimeSeries& x, const TimeSeries& y,
                  float* kept, float* work) {
  HWY_DYNAMIC_DISPATCH(ConvolveTile)(plan, k, x, y, kept, work);
}

void ConvolveTiles(const FftPlan& plan, const float* k, const TimeSeries& x, const TimeSeries& y,
                   float* work) {
  HWY_DYNAMIC_DISPATCH(ConvolveTiles)(plan, k, x, y, work);
}

void CorrelateTile(const FftPlan& plan, const float* k, const float* x, const TimeSeries& dy,
                   const TimeSeries& dx, float* sums, float* work) {
  HWY_DYNAMIC_DISPATCH(CorrelateTile)(plan, k, x, dy, dx, sums, work);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
