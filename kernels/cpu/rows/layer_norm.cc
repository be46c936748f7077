#include "kernels/cpu/rows/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"
#include "kernels/cpu/gemm/product_inputs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/layer_norm.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// sum_i (x_i - shift)^kPower: four chains per lane, then the lanes, then the tail.
template <int kPower>
HWY_INLINE float SumOfPowers(const float* x, int64_t n, float shift) {
  const D d;
  const V offset = hn::Set(d, shift);
  V sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  const auto add = [&](const float* from, V& sum) {
    const V v = hn::Sub(hn::LoadU(d, from), offset);
    sum = kPower == 1 ? hn::Add(sum, v) : hn::MulAdd(v, v, sum);
  };
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) add(x + i + j * kLanes, sums[j]);
  }
  for (; i + kLanes <= n; i += kLanes) add(x + i, sums[0]);
  const V all = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  float sum = hn::GetLane(hn::SumOfLanes(d, all));
  for (; i < n; ++i) {
    const float v = x[i] - shift;
    sum += kPower == 1 ? v : v * v;
  }
  return sum;
}

struct Moments {
  float mean;
  float scale;  // 1 / sqrt(variance + epsilon)
};

HWY_INLINE Moments MomentsOf(const float* x, double epsilon, int64_t n) {
  const float count = static_cast<float>(n);
  const float mean = SumOfPowers<1>(x, n, 0) / count;
  const float variance = SumOfPowers<2>(x, n, mean) / count;
  return {mean, static_cast<float>(1 / std::sqrt(static_cast<double>(variance) + epsilon))};
}

void NormaliseRow(const float* x, const float* gamma, const float* beta, double epsilon, int64_t n,
                  float* y) {
  const D d;
  const auto [mean, scale] = MomentsOf(x, epsilon, n);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V v = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, scale));
    hn::StoreU(hn::MulAdd(v, hn::LoadU(d, gamma + i), hn::LoadU(d, beta + i)), d, y + i);
  }
  for (; i < n; ++i) y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
}

// sum_i g_i and sum_i g_i xhat_i of some lanes, with g = dy gamma.
template <class DV>
struct RowSums {
  hn::Vec<DV> g, product;
};

template <class DV>
HWY_INLINE hn::Vec<DV> Normalised(DV d, Moments m, const float* x) {
  return hn::Mul(hn::Sub(hn::LoadU(d, x), hn::Set(d, m.mean)), hn::Set(d, m.scale));
}

// Adds elements [i, i + lanes) of a row to its sums and to those of dgamma and dbeta.
template <class DV>
HWY_INLINE void SumElements(DV d, Moments m, const float* x, const float* gamma, const float* dy,
                            int64_t i, RowSums<DV>& row, float* dgamma, float* dbeta) {
  const auto xhat = Normalised(d, m, x + i);
  const auto v = hn::LoadU(d, dy + i);
  const auto g = hn::Mul(v, hn::LoadU(d, gamma + i));
  row.g = hn::Add(row.g, g);
  row.product = hn::MulAdd(g, xhat, row.product);
  hn::StoreU(hn::MulAdd(v, xhat, hn::LoadU(d, dgamma + i)), d, dgamma + i);
  hn::StoreU(hn::Add(v, hn::LoadU(d, dbeta + i)), d, dbeta + i);
}

// dx = scale (g - mean(g) - xhat mean(g xhat)), elements [i, i + lanes).
template <class DV>
HWY_INLINE void StoreElements(DV d, Moments m, const float* x, const float* gamma, const float* dy,
                              float mean_g, float mean_product, bool add, int64_t i, float* dx) {
  const auto xhat = Normalised(d, m, x + i);
  const auto g = hn::Mul(hn::LoadU(d, dy + i), hn::LoadU(d, gamma + i));
  const auto centred = hn::Sub(g, hn::Set(d, mean_g));
  const auto v = hn::NegMulAdd(xhat, hn::Set(d, mean_product), centred);
  const auto scale = hn::Set(d, m.scale);
  const auto old = add ? hn::LoadU(d, dx + i) : hn::Zero(d);
  hn::StoreU(hn::MulAdd(v, scale, old), d, dx + i);
}

// One row: adds its shares of dgamma and dbeta, and gives dx if that is wanted.
void BackwardRow(const float* x, const float* gamma, double epsilon, const float* dy, int64_t n,
                 float* dgamma, float* dbeta, bool add, float* dx) {
  const D d;
  const One one;
  const Moments m = MomentsOf(x, epsilon, n);
  RowSums<D> row = {hn::Zero(d), hn::Zero(d)};
  RowSums<One> tail = {hn::Zero(one), hn::Zero(one)};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) SumElements(d, m, x, gamma, dy, i, row, dgamma, dbeta);
  for (; i < n; ++i) SumElements(one, m, x, gamma, dy, i, tail, dgamma, dbeta);
  if (dx == nullptr) return;

  const float count = static_cast<float>(n);
  const float sum_g = hn::GetLane(hn::SumOfLanes(d, row.g)) + hn::GetLane(tail.g);
  const float sum_product = hn::GetLane(hn::SumOfLanes(d, row.product)) + hn::GetLane(tail.product);
  const float mean_g = sum_g / count;
  const float mean_product = sum_product / count;
  i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    StoreElements(d, m, x, gamma, dy, mean_g, mean_product, add, i, dx);
  }
  for (; i < n; ++i) StoreElements(one, m, x, gamma, dy, mean_g, mean_product, add, i, dx);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(NormaliseRow);
HWY_EXPORT(BackwardRow);

namespace {

// Rows whose shares of dgamma and dbeta are summed together.
constexpr int64_t kRowBlock = 64;

// y += the rows of x, of which each starts `stride` after the one before.
void AddRows(const float* x, int64_t rows, int64_t stride, const Tensor& y) {
  if (y.data == nullptr) return;
  float* sum = F32Row(y, 0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < y.cols; ++c) sum[c] += x[r * stride + c];
  }
}

}  // namespace

void LayerNorm(ThreadPool& pool, Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  assert(x.rows == y.rows && x.cols == y.cols && gamma.cols == x.cols && beta.cols == x.cols);
  const bool rounds = y.dtype != DType::kF32;
  ParallelRows(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    float* const scratch =
        rounds ? ThreadScratch<float>(ScratchUse::kNormalisedRow, x.cols) : nullptr;
    for (int64_t row = begin; row < end; ++row) {
      float* const to = rounds ? scratch : F32Row(y, row);
      HWY_DYNAMIC_DISPATCH(NormaliseRow)(F32Row(x, row), F32Row(gamma, 0), F32Row(beta, 0), epsilon,
                                         x.cols, to);
      if (rounds) StoreInputs(scratch, y, row);
    }
  });
}

void LayerNormBackward(ThreadPool& pool, Tensor x, Tensor gamma, double epsilon, Tensor dy,
                       Gradient dx, Tensor dgamma, Tensor dbeta) {
  const int64_t d = x.cols;
  assert(dy.rows == x.rows && dy.cols == d && gamma.cols == d);
  const int64_t blocks = (x.rows + kRowBlock - 1) / kRowBlock;
  float* sums = ThreadScratch<float>(ScratchUse::kRowSums, blocks * 2 * d);
  ParallelRows(pool, blocks, 3 * kRowBlock * d, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      float* shares = sums + block * 2 * d;
      std::fill_n(shares, 2 * d, 0.0f);
      const int64_t last = std::min(x.rows, (block + 1) * kRowBlock);
      for (int64_t row = block * kRowBlock; row < last; ++row) {
        float* out = dx.tensor.data == nullptr ? nullptr : F32Row(dx.tensor, row);
        HWY_DYNAMIC_DISPATCH(BackwardRow)
        (F32Row(x, row), F32Row(gamma, 0), epsilon, F32Row(dy, row), d, shares, shares + d, dx.add,
         out);
      }
    }
  });
  AddRows(sums, blocks, 2 * d, dgamma);
  AddRows(sums + d, blocks, 2 * d, dbeta);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
